// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/test/stack/stack"
)

// Instance types with special behavior.
const (
	failingType = "a"
	slowType    = "slow"
)

// All instance types have the same size, and a Pod uses more than half of it, so each Pod needs its own Node.
var (
	capacity = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("80Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	reserved = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("610Mi"),
	}
	requests = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("3"), corev1.ResourceMemory: resource.MustParse("1Gi"),
	}
)

// workload is a Deployment with a NodePool of the same name, and its share of all Pods.
type workload struct {
	// Name, and the InstanceTypes and Zones that its NodePool allows, separated by commas.
	Name, InstanceTypes, Zones string
	// share of 30 parts.
	share int
}

// workloads use all offerings, each the cheapest of those that it may use. Only machines of instance type a can fail:
// an offering with a failed machine is unavailable for minutes, and workloads that allow a also allow another type.
var workloads = []workload{
	{"a-1", "a, c", "zone-1", 8},
	{"a-2", "a, b", "zone-2", 6},
	{"b-1", "b", "zone-1", 4},
	{"b-2", "b", "zone-2", 3},
	{"c-1", "c", "zone-1", 3},
	{"slow", slowType, "zone-1", 2},
	{"any", "a, b, c", "zone-1, zone-2", 4},
}

// spread returns how many Pods each workload has, given the total.
func spread(pods int) []int {
	parts := 0
	for _, w := range workloads {
		parts += w.share
	}
	counts := make([]int, len(workloads))
	done, before := 0, 0
	for i, w := range workloads {
		// The rest from rounding goes to the next one.
		before += w.share
		counts[i] = pods*before/parts - done
		done += counts[i]
	}
	return counts
}

var podLabels = map[string]string{"chaos": "true"}

// deployments returns the Deployments, without Pods.
func deployments() []*appsv1.Deployment {
	var all []*appsv1.Deployment
	for _, w := range workloads {
		labels := map[string]string{"chaos": "true", "app": w.Name}
		template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(1)),
			NodeSelector:                  map[string]string{karpv1.NodePoolLabelKey: w.Name},
			Containers: []corev1.Container{{
				Name: "app", Image: "registry.k8s.io/pause:3.10", Resources: corev1.ResourceRequirements{Requests: requests},
			}},
		}}
		all = append(all, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: stack.ClusterNamespace, Name: w.Name, Labels: podLabels},
			Spec: appsv1.DeploymentSpec{
				Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": w.Name}}, Template: template,
			},
		})
	}
	return all
}

// scale sets the total number of Pods.
func (s *scene) scale(ctx context.Context, pods int) error {
	for i, count := range spread(pods) {
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: stack.ClusterNamespace, Name: workloads[i].Name}}
		patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, count)
		if err := s.Workload.Patch(ctx, deployment, client.RawPatch("application/merge-patch+json", patch)); err != nil {
			return fmt.Errorf("scaling Deployment %s to %d: %w", workloads[i].Name, count, err)
		}
	}
	return nil
}
