// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/infrastructure/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/stack/kinds"
	"github.com/karpenter-capi/karpenter-capi/test/stack/stack"
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

// left is what an unused cluster must not have: all of it costs money, or represents what does.
type left struct {
	Pods, Claims, Nodes, Machines, Instances, Replicas int
}

// whatIsLeft counts these objects.
func whatIsLeft(ctx context.Context, s *stack.Stack) (left, error) {
	pods, claims, nodes := &corev1.PodList{}, &karpv1.NodeClaimList{}, &corev1.NodeList{}
	machines, instances := &clusterv1.MachineList{}, &infrav1.SimulatedMachineList{}
	resources, err := kinds.Resources(ctx, s.Management)
	err = errors.Join(
		err,
		s.Workload.List(ctx, pods, client.InNamespace(corev1.NamespaceDefault)),
		s.Workload.List(ctx, claims),
		s.Workload.List(ctx, nodes),
		s.Management.List(ctx, machines),
		s.Management.List(ctx, instances),
	)
	found := left{
		Pods: len(pods.Items), Claims: len(claims.Items), Nodes: len(nodes.Items),
		Machines: len(machines.Items), Instances: len(instances.Items),
	}
	for _, resource := range resources {
		found.Replicas += resource.Replicas
	}
	return found, err
}
