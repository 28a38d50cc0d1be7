// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/test/stack/stack"
)

const slowType = "slow"

// All instance types are alike, and a Pod fills more than half of one: each Pod needs a Node of its own.
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

// workload is a Deployment, and its share of all Pods.
type workload struct {
	name string
	// instanceType and zone are where its Pods are to run; anywhere when they are empty.
	instanceType, zone string
	// share of 30 parts.
	share int
}

// workloads use all offerings; a fifth of the Pods may run anywhere.
var workloads = []workload{
	{"a-1", "a", "zone-1", 5},
	{"a-2", "a", "zone-2", 4},
	{"b-1", "b", "zone-1", 4},
	{"b-2", "b", "zone-2", 4},
	{"c-1", "c", "zone-1", 5},
	{slowType, slowType, "zone-1", 2},
	{"any", "", "", 6},
}

// spread returns how many Pods each workload has when all have so many together.
func spread(pods int) []int {
	parts := 0
	for _, w := range workloads {
		parts += w.share
	}
	counts := make([]int, len(workloads))
	done, before := 0, 0
	for i, w := range workloads {
		// What is lost by rounding is the next one's.
		before += w.share
		counts[i] = pods*before/parts - done
		done += counts[i]
	}
	return counts
}

var podLabels = map[string]string{"chaos": "true"}

// deployments returns the Deployments, without Pods. Where machines may fail, the Pods only prefer their offering: one
// that has failed is left alone for minutes.
func deployments(mayFail bool) []*appsv1.Deployment {
	var all []*appsv1.Deployment
	for _, w := range workloads {
		labels := map[string]string{"chaos": "true", "app": w.name}
		template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(1)),
			Containers: []corev1.Container{{
				Name: "app", Image: "registry.k8s.io/pause:3.10", Resources: corev1.ResourceRequirements{Requests: requests},
			}},
		}}
		if offering := (map[string]string{
			corev1.LabelInstanceTypeStable: w.instanceType, corev1.LabelTopologyZone: w.zone,
		}); w.instanceType != "" && mayFail {
			template.Spec.Affinity = preferring(offering)
		} else if w.instanceType != "" {
			template.Spec.NodeSelector = offering
		}
		all = append(all, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: stack.ClusterNamespace, Name: w.name, Labels: podLabels},
			Spec: appsv1.DeploymentSpec{
				Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": w.name}}, Template: template,
			},
		})
	}
	return all
}

// preferring returns the affinity to Nodes with labels.
func preferring(labels map[string]string) *corev1.Affinity {
	term := corev1.PreferredSchedulingTerm{Weight: 1}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		term.Preference.MatchExpressions = append(term.Preference.MatchExpressions, corev1.NodeSelectorRequirement{
			Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{labels[key]},
		})
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{term},
	}}
}

// scale makes so many Pods be wanted.
func (s *scene) scale(ctx context.Context, pods int) error {
	for i, count := range spread(pods) {
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: stack.ClusterNamespace, Name: workloads[i].name}}
		patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, count)
		if err := s.Workload.Patch(ctx, deployment, client.RawPatch("application/merge-patch+json", patch)); err != nil {
			return fmt.Errorf("scaling Deployment %s to %d: %w", workloads[i].name, count, err)
		}
	}
	return nil
}
