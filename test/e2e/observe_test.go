// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/census"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// runningPods returns how many Pods of an app run.
func runningPods(ctx context.Context, s *stack.Stack, app string) (int, error) {
	pods := &corev1.PodList{}
	err := s.Workload.List(ctx, pods, client.InNamespace(corev1.NamespaceDefault), client.MatchingLabels{"app": app})
	running := 0
	for i := range pods.Items {
		if pods.Items[i].Status.Phase == corev1.PodRunning {
			running++
		}
	}
	return running, err
}

// machinesOf returns the Machines of an instance type.
func machinesOf(ctx context.Context, s *stack.Stack, instanceType string) ([]clusterv1.Machine, error) {
	machines := &clusterv1.MachineList{}
	err := s.Management.List(ctx, machines, client.MatchingLabels{v1alpha1.InstanceTypeLabel: instanceType})
	return machines.Items, err
}

// whatExists counts the objects of both clusters.
func whatExists(ctx context.Context, s *stack.Stack) (census.Census, error) {
	return census.Of(ctx, s.Workload, s.Management, client.InNamespace(corev1.NamespaceDefault))
}

// whatIsLeft counts the objects that an unused cluster must not have, because each of them costs
// money or represents what does. Scalable resources without replicas cost nothing.
func whatIsLeft(ctx context.Context, s *stack.Stack) (census.Census, error) {
	left, err := whatExists(ctx, s)
	left.Resources = 0
	return left, err
}
