// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

const (
	// registerWithTaints is the kubelet's argument that takes precedence over kubeadm's own
	// taints (kubernetes: cmd/kubeadm/app/phases/kubelet/flags.go).
	registerWithTaints = "register-with-taints"
	maxPodsArgument    = "max-pods"
)

// registrationPath is the path of nodeRegistration in the spec of a KubeadmConfigTemplate.
var registrationPath = []string{"template", "spec", "joinConfiguration", "nodeRegistration"}

// joinTainted modifies the spec of a KubeadmConfigTemplate. It adds the taint that keeps
// Pods away until Karpenter has registered the Node, and the given arguments of the kubelet.
// It replaces no other settings.
func joinTainted(version string, spec map[string]any, added []argument) error {
	registration, given, err := readRegistration(version, spec)
	if err != nil {
		return err
	}
	arguments := lo.Reject(given, func(a argument, _ int) bool { return slices.ContainsFunc(added, a.sameName) })
	if i := slices.IndexFunc(arguments, argument{name: registerWithTaints}.sameName); i >= 0 {
		arguments[i].value = withTaint(arguments[i].value)
	} else if err := addTaint(registration); err != nil {
		return err
	}
	writeArguments(version, registration, append(arguments, added...))
	return unstructured.SetNestedMap(spec, registration, registrationPath...)
}

// readRegistration returns a copy of nodeRegistration, and the arguments of the kubelet in it.
func readRegistration(version string, spec map[string]any) (map[string]any, []argument, error) {
	registration, _, err := unstructured.NestedMap(spec, registrationPath...)
	if err != nil {
		return nil, nil, fmt.Errorf("spec.%s: %w", strings.Join(registrationPath, "."), err)
	}
	if registration == nil {
		registration = map[string]any{}
	}
	arguments, err := readArguments(version, registration)
	return registration, arguments, err
}

// argument is an argument of the kubelet. Some can be set more than once.
type argument struct{ name, value string }

func (a argument) sameName(other argument) bool { return a.name == other.name }

// withTaint returns the value of register-with-taints with the taint added.
func withTaint(taints string) string {
	taint := karpv1.UnregisteredNoExecuteTaint
	for given := range strings.SplitSeq(taints, ",") {
		key, effect, _ := strings.Cut(given, ":")
		if key, _, _ = strings.Cut(key, "="); key == taint.Key && effect == string(taint.Effect) {
			return taints
		}
	}
	return strings.Join(lo.Compact([]string{taints, taint.ToString()}), ",")
}

// addTaint adds the taint to nodeRegistration.taints.
func addTaint(registration map[string]any) error {
	taint := karpv1.UnregisteredNoExecuteTaint
	taints, _, err := unstructured.NestedSlice(registration, "taints")
	if err != nil {
		return fmt.Errorf("spec.template.spec.joinConfiguration.nodeRegistration.taints: %w", err)
	}
	has := slices.ContainsFunc(taints, func(given any) bool {
		fields, _ := given.(map[string]any)
		return fields["key"] == taint.Key && fields["effect"] == string(taint.Effect)
	})
	if !has {
		registration["taints"] = append(taints, map[string]any{"key": taint.Key, "effect": string(taint.Effect)})
	}
	return nil
}

// readArguments returns nodeRegistration.kubeletExtraArgs, which is a map in v1beta1 and a
// list of names and values in later versions.
func readArguments(version string, registration map[string]any) ([]argument, error) {
	if version == "v1beta1" {
		given, _, err := unstructured.NestedStringMap(registration, "kubeletExtraArgs")
		if err != nil {
			return nil, fmt.Errorf("spec.template.spec.joinConfiguration.nodeRegistration.kubeletExtraArgs: %w", err)
		}
		return lo.Map(slices.Sorted(maps.Keys(given)), func(name string, _ int) argument { return argument{name, given[name]} }), nil
	}
	list, _, err := unstructured.NestedSlice(registration, "kubeletExtraArgs")
	if err != nil {
		return nil, fmt.Errorf("spec.template.spec.joinConfiguration.nodeRegistration.kubeletExtraArgs: %w", err)
	}
	var arguments []argument
	for i, item := range list {
		fields, _ := item.(map[string]any)
		name, isName := fields["name"].(string)
		value, isValue := fields["value"].(string)
		if !isName || !isValue {
			return nil, fmt.Errorf("spec.template.spec.joinConfiguration.nodeRegistration.kubeletExtraArgs[%d]: expected a name and a value, found %v", i, item)
		}
		arguments = append(arguments, argument{name, value})
	}
	return arguments, nil
}

func writeArguments(version string, registration map[string]any, arguments []argument) {
	switch {
	case len(arguments) == 0:
	case version == "v1beta1":
		registration["kubeletExtraArgs"] = lo.SliceToMap(arguments, func(a argument) (string, any) { return a.name, a.value })
	default:
		registration["kubeletExtraArgs"] = lo.Map(arguments, func(a argument, _ int) any {
			return map[string]any{"name": a.name, "value": a.value}
		})
	}
}

// kubeletArguments returns the kubelet's arguments for its configuration on Nodes of an instance type,
// with which package catalog computes allocatable.
func kubeletArguments(kubelet *v1alpha1.KubeletConfiguration) []argument {
	if kubelet == nil {
		return nil
	}
	var arguments []argument
	if kubelet.MaxPods != nil {
		arguments = append(arguments, argument{maxPodsArgument, strconv.Itoa(int(*kubelet.MaxPods))})
	}
	quantity := func(quantity resource.Quantity) string { return quantity.String() }
	if len(kubelet.SystemReserved) > 0 {
		arguments = append(arguments, argument{"system-reserved", pairs(kubelet.SystemReserved, "=", quantity)})
	}
	if len(kubelet.KubeReserved) > 0 {
		arguments = append(arguments, argument{"kube-reserved", pairs(kubelet.KubeReserved, "=", quantity)})
	}
	if kubelet.EvictionHard != nil {
		arguments = append(arguments, argument{"eviction-hard", pairs(kubelet.EvictionHard, "<", func(threshold v1alpha1.EvictionThreshold) string { return string(threshold) })})
	}
	return arguments
}

// pairs returns a map in the form that the kubelet reads: k1=v1,k2=v2.
func pairs[K ~string, V any](values map[K]V, separator string, text func(V) string) string {
	return strings.Join(lo.Map(slices.Sorted(maps.Keys(values)), func(key K, _ int) string {
		return string(key) + separator + text(values[key])
	}), ",")
}
