// SPDX-License-Identifier: Apache-2.0

// Package workload has Deployments for programs on the local stack, each of whose Pods needs its own Node.
package workload

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// All machines have the same size, and a Pod uses more than half of one, so each Pod needs its own Node.
var (
	Capacity = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("80Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	Reserved = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("610Mi"),
	}
	requests = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("3"), corev1.ResourceMemory: resource.MustParse("1Gi"),
	}
)

// Deployment returns a Deployment without Pods. The Deployment and its Pods have the given labels, and the Pods run on
// the selected Nodes.
func Deployment(name string, labels, nodes map[string]string) *appsv1.Deployment {
	podLabels := map[string]string{"app": name}
	for key, value := range labels {
		podLabels[key] = value
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: stack.ClusterNamespace, Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: podLabels}, Spec: corev1.PodSpec{
				TerminationGracePeriodSeconds: new(int64(1)),
				NodeSelector:                  nodes,
				Containers: []corev1.Container{{
					Name: "app", Image: "registry.k8s.io/pause:3.10", Resources: corev1.ResourceRequirements{Requests: requests},
				}},
			}},
		},
	}
}

// Scale sets the number of Pods of a Deployment.
func Scale(ctx context.Context, c client.Client, name string, pods int) error {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: stack.ClusterNamespace, Name: name}}
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, pods)
	if err := c.Patch(ctx, deployment, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		return fmt.Errorf("scaling Deployment %s to %d: %w", name, pods, err)
	}
	return nil
}
