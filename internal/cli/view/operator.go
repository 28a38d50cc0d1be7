// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/karpenter-capi/karpenter-capi/internal/build"
)

// These labels of the operator's Pods say what they are, and of which installation.
const (
	nameLabel     = "app.kubernetes.io/name"
	instanceLabel = "app.kubernetes.io/instance"
)

// defaultContainer is the annotation of a Pod with the name of its main container.
const defaultContainer = "kubectl.kubernetes.io/default-container"

// Operator is the operator of the Cluster, as its Pods show it.
type Operator struct {
	// Pods are sorted by name. There is at least one.
	Pods []corev1.Pod
	// InWorkload reports whether they are in the workload cluster.
	InWorkload bool

	in cluster.Cluster
}

// Operator returns the operator of the Cluster; nil if it has no Pods. The error is why Pods cannot be listed.
func (v *View) Operator(ctx context.Context) (*Operator, error) {
	if v.operator != nil {
		return v.operator, nil
	}
	var err error
	v.operator, err = v.findOperator(ctx)
	return v.operator, err
}

// findOperator looks for Pods beside the lease. Without a lease, the operator may have never started, and its Pods can be in any
// namespace.
func (v *View) findOperator(ctx context.Context) (*Operator, error) {
	if lease := v.Lease(ctx); lease != nil {
		return v.operatorIn(ctx, lease.InWorkload, client.InNamespace(lease.Namespace), client.MatchingLabels(v.labelsOf(ctx, lease)))
	}
	var errs []error
	for _, workload := range []bool{true, false} {
		found, err := v.operatorIn(ctx, workload, client.MatchingLabels{nameLabel: build.Name})
		if found != nil {
			return found, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// labelsOf returns the labels of the operator's Pods: those of the Pod with the lease, because an installation can change them.
func (v *View) labelsOf(ctx context.Context, lease *Lease) map[string]string {
	// The holder is the host name of the Pod, and a UID (controller-runtime: pkg/leaderelection/leader_election.go).
	name, _, _ := strings.Cut(lo.FromPtr(lease.Spec.HolderIdentity), "_")
	leader := &corev1.Pod{}
	if err := v.clusterOf(lease.InWorkload).GetAPIReader().Get(ctx, client.ObjectKey{Namespace: lease.Namespace, Name: name}, leader); err == nil {
		if labels := lo.PickByKeys(leader.Labels, []string{nameLabel, instanceLabel}); labels[nameLabel] != "" {
			return labels
		}
	}
	return map[string]string{nameLabel: build.Name}
}

// operatorIn returns the operator whose Pods a list has; nil if there are none.
func (v *View) operatorIn(ctx context.Context, workload bool, options ...client.ListOption) (*Operator, error) {
	list, in := &corev1.PodList{}, v.clusterOf(workload)
	if err := in.GetAPIReader().List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("%s: listing the operator's Pods: %w", nameOf(workload), err)
	}
	found := &Operator{InWorkload: workload, in: in}
	found.Pods = lo.Filter(list.Items, func(pod corev1.Pod, _ int) bool {
		namespace, name := settingOf(&pod, "cluster-namespace", "CLUSTER_NAMESPACE"), settingOf(&pod, "cluster-name", "CLUSTER_NAME")
		// A management cluster can have operators of several Clusters. An operator without these settings serves the only one.
		return (namespace == "" || namespace == v.Served().Namespace) && (name == "" || name == v.Served().Name)
	})
	if len(found.Pods) == 0 {
		return nil, nil
	}
	slices.SortFunc(found.Pods, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return found, nil
}

// Container returns the container of a Pod that is the operator.
func Container(pod *corev1.Pod) *corev1.Container {
	containers := pod.Spec.Containers
	for i := range containers {
		if containers[i].Name == pod.Annotations[defaultContainer] {
			return &containers[i]
		}
	}
	if len(containers) == 0 {
		return &corev1.Container{}
	}
	return &containers[0]
}

// Setting returns what a flag or the environment variable for it sets; empty if that is not known.
func (o *Operator) Setting(flag, variable string) string {
	return settingOf(&o.Pods[0], flag, variable)
}

func settingOf(pod *corev1.Pod, flag, variable string) string {
	container := Container(pod)
	variables := map[string]string{}
	for _, entry := range container.Env {
		value := entry.Value
		if from := entry.ValueFrom; from != nil && from.FieldRef != nil && from.FieldRef.FieldPath == "metadata.namespace" {
			value = pod.Namespace
		}
		variables[entry.Name] = value
	}
	words := slices.Concat(container.Command, container.Args)
	for i, word := range words {
		name, value, hasValue := strings.Cut(strings.TrimLeft(word, "-"), "=")
		if !strings.HasPrefix(word, "-") || name != flag {
			continue
		}
		if !hasValue && i+1 < len(words) {
			value = words[i+1]
		}
		return expand(value, variables)
	}
	return variables[variable]
}

// expand replaces the variables of a container in an argument, as the kubelet does.
func expand(argument string, variables map[string]string) string {
	for name, value := range variables {
		argument = strings.ReplaceAll(argument, "$("+name+")", value)
	}
	return argument
}

// Kubeconfig is the kubeconfig with which the operator reaches the other cluster.
type Kubeconfig struct {
	// ForWorkload reports whether it is for the workload cluster.
	ForWorkload bool
	// Path is where the operator reads it.
	Path string
	// Namespace, Secret and Key are where it is stored, in the cluster in which the operator runs. They are empty if it comes from
	// no Secret.
	Namespace, Secret, Key string
}

// Kubeconfig returns the kubeconfig of the operator; nil if it has none, because it runs in the only cluster.
func (o *Operator) Kubeconfig() *Kubeconfig {
	found := &Kubeconfig{ForWorkload: true, Path: o.Setting("workload-kubeconfig", "WORKLOAD_KUBECONFIG")}
	if found.Path == "" {
		found.ForWorkload, found.Path = false, o.Setting("cluster-api-kubeconfig", "CLUSTER_API_KUBECONFIG")
	}
	if found.Path == "" {
		return nil
	}
	pod := &o.Pods[0]
	for _, mount := range Container(pod).VolumeMounts {
		file, in := strings.CutPrefix(found.Path+"/", strings.TrimSuffix(mount.MountPath, "/")+"/")
		if !in {
			continue
		}
		file = path.Join(mount.SubPath, file) // without the slash at the end
		for _, volume := range pod.Spec.Volumes {
			if volume.Name != mount.Name || volume.Secret == nil {
				continue
			}
			found.Namespace, found.Secret, found.Key = pod.Namespace, volume.Secret.SecretName, file
			for _, item := range volume.Secret.Items {
				if item.Path == file {
					found.Key = item.Key
				}
			}
		}
	}
	return found
}

// Content reads the kubeconfig from its Secret.
func (o *Operator) Content(ctx context.Context, from *Kubeconfig) ([]byte, error) {
	secret := &corev1.Secret{}
	if err := o.in.GetAPIReader().Get(ctx, client.ObjectKey{Namespace: from.Namespace, Name: from.Secret}, secret); err != nil {
		return nil, err
	}
	content, found := secret.Data[from.Key]
	if !found {
		return nil, fmt.Errorf("it has no key %s", from.Key)
	}
	return content, nil
}
