// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubeletapis "k8s.io/kubelet/pkg/apis"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/types/upstreamv1beta4"
	"sigs.k8s.io/karpenter/pkg/utils/resources"
)

// kubelet has the arguments of a kubelet that change its Node.
type kubelet struct {
	hostname string
	labels   map[string]string
	// taints are those of register-with-taints; nil without that argument.
	taints  *[]corev1.Taint
	maxPods int64
	// reserved is what the kubelet keeps for the system and itself, and eviction what must be left.
	reserved []corev1.ResourceList
	eviction map[string]string
}

// The kubelet's defaults (kubernetes: pkg/kubelet/apis/config/v1beta1/defaults.go, pkg/kubelet/eviction/defaults_linux.go).
const defaultMaxPods = 110

var defaultEviction = map[string]string{"memory.available": "100Mi", "nodefs.available": "10%"}

// newKubelet reads the arguments of a kubelet. The last one of several with a name counts.
func newKubelet(arguments []upstreamv1beta4.Arg) (*kubelet, error) {
	k := &kubelet{maxPods: defaultMaxPods, eviction: defaultEviction}
	values := lo.SliceToMap(arguments, func(a upstreamv1beta4.Arg) (string, string) { return a.Name, a.Value })
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if err := k.set(name, values[name]); err != nil {
			return nil, fmt.Errorf("the kubelet's argument %s=%s: %w", name, values[name], err)
		}
	}
	return k, nil
}

func (k *kubelet) set(name, value string) (err error) {
	switch name {
	case "hostname-override":
		k.hostname = value
	case "node-labels":
		k.labels, err = parseLabels(value)
	case "register-with-taints":
		var taints []corev1.Taint
		taints, err = parseTaints(value)
		k.taints = &taints
	case "max-pods":
		k.maxPods, err = strconv.ParseInt(value, 10, 32)
	case "kube-reserved", "system-reserved":
		var reserved corev1.ResourceList
		reserved, err = parseReserved(value)
		k.reserved = append(k.reserved, reserved)
	case "eviction-hard":
		k.eviction, err = parsePairs(value, "<")
		for _, threshold := range k.eviction {
			_, wrong := thresholdOf(threshold, resource.Quantity{})
			err = errors.Join(err, wrong)
		}
	}
	return err
}

// parsePairs reads a list such as a=1,b=2.
func parsePairs(text, separator string) (map[string]string, error) {
	pairs := map[string]string{}
	for item := range strings.SplitSeq(text, ",") {
		if item == "" {
			continue
		}
		key, value, found := strings.Cut(item, separator)
		if !found {
			return nil, fmt.Errorf("%q has no %q", item, separator)
		}
		pairs[strings.TrimSpace(key)] = strings.TrimSpace(value)
	}
	return pairs, nil
}

// parseLabels rejects labels of Kubernetes that the kubelet must not set (kubernetes: cmd/kubelet/app/options/options.go,
// ValidateKubeletFlags).
func parseLabels(text string) (map[string]string, error) {
	labels, err := parsePairs(text, "=")
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		namespace, _, _ := strings.Cut(name, "/")
		isKubernetes := lo.ContainsBy([]string{"kubernetes.io", "k8s.io"}, func(suffix string) bool {
			return namespace == suffix || strings.HasSuffix(namespace, "."+suffix)
		})
		if isKubernetes && !kubeletapis.IsKubeletLabel(name) {
			return nil, fmt.Errorf("unknown 'kubernetes.io' or 'k8s.io' label %s", name)
		}
	}
	return labels, err
}

// parseTaints reads taints such as key=value:Effect,key:Effect.
func parseTaints(text string) ([]corev1.Taint, error) {
	var taints []corev1.Taint
	for item := range strings.SplitSeq(text, ",") {
		if item == "" {
			continue
		}
		keyValue, effect, _ := strings.Cut(item, ":")
		switch corev1.TaintEffect(effect) {
		case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		default:
			return nil, fmt.Errorf("the taint %q has no effect of taints", item)
		}
		key, value, _ := strings.Cut(keyValue, "=")
		taints = append(taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
	}
	return taints, nil
}

func parseReserved(text string) (corev1.ResourceList, error) {
	pairs, err := parsePairs(text, "=")
	reserved := corev1.ResourceList{}
	for name, value := range pairs {
		if reserved[corev1.ResourceName(name)], err = resource.ParseQuantity(value); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return reserved, err
}

// evictionSignals are the thresholds of evictions that limit what is allocatable (kubernetes:
// pkg/kubelet/eviction/helpers.go, HardEvictionReservation).
var evictionSignals = map[string]corev1.ResourceName{
	"memory.available": corev1.ResourceMemory, "nodefs.available": corev1.ResourceEphemeralStorage,
}

// Resources returns the capacity and what is allocatable of a Node whose machine has some resources.
func (j *Join) Resources(machine corev1.ResourceList) (capacity, allocatable corev1.ResourceList) {
	capacity = machine.DeepCopy()
	capacity[corev1.ResourcePods] = *resource.NewQuantity(j.kubelet.maxPods, resource.DecimalSI)
	kept := corev1.ResourceList{}
	for signal, name := range evictionSignals {
		if threshold, found := j.kubelet.eviction[signal]; found {
			kept[name], _ = thresholdOf(threshold, capacity[name]) // newKubelet has read it.
		}
	}
	return capacity, Allocatable(capacity, resources.Merge(append([]corev1.ResourceList{kept}, j.kubelet.reserved...)...))
}

// Allocatable returns what is left of the capacity, never less than zero.
func Allocatable(capacity, reserved corev1.ResourceList) corev1.ResourceList {
	result := capacity.DeepCopy()
	for name, quantity := range reserved {
		left, ok := result[name]
		if !ok {
			continue
		}
		left.Sub(quantity)
		if left.Sign() < 0 {
			left = *resource.NewQuantity(0, left.Format)
		}
		result[name] = left
	}
	return result
}

// thresholdOf returns the amount of a threshold: a quantity, or a part of the capacity, for which the kubelet has only 32 bits
// (kubernetes: pkg/kubelet/eviction/helpers.go, parsePercentage; pkg/kubelet/eviction/api/types.go, GetThresholdQuantity).
func thresholdOf(threshold string, capacity resource.Quantity) (resource.Quantity, error) {
	percent, isPart := strings.CutSuffix(threshold, "%")
	if !isPart {
		return resource.ParseQuantity(threshold)
	}
	value, err := strconv.ParseFloat(percent, 32)
	part := float32(value) / 100
	return *resource.NewQuantity(int64(float64(capacity.Value())*float64(part)), resource.BinarySI), err
}
