// SPDX-License-Identifier: Apache-2.0

// Package census counts what exists for Pods in both clusters: NodeClaims, scalable resources,
// Machines, instances and Nodes.
package census

import (
	"context"
	"errors"
	"fmt"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
)

// Census is how many objects exist. An object that is being deleted exists, but does not count as
// running or initialized. The zero value is a cluster in which nothing is left.
type Census struct {
	Pods, Running       int
	Claims, Initialized int
	// Resources are MachineDeployments and MachinePools, and Replicas the sum of theirs.
	Resources, Replicas int
	Machines, Instances int
	Nodes               int
}

// String implements fmt.Stringer.
func (c Census) String() string {
	return fmt.Sprintf("pods %d/%d running  claims %d/%d initialized  resources %d (replicas %d)  machines %d  instances %d  nodes %d",
		c.Running, c.Pods, c.Initialized, c.Claims, c.Resources, c.Replicas, c.Machines, c.Instances, c.Nodes)
}

// Settled reports whether each of the given number of Pods runs and has its claim, Machine,
// instance and Node, and nothing else exists. Scalable resources without replicas do not count.
func (c Census) Settled(pods int) bool {
	c.Resources = 0
	return c == Census{Pods: pods, Running: pods, Claims: pods, Initialized: pods, Replicas: pods, Machines: pods, Instances: pods, Nodes: pods}
}

// Of lists the objects of both clusters; of Pods those that the options select.
func Of(ctx context.Context, workload, management client.Reader, pods ...client.ListOption) (Census, error) {
	podList, claims, nodes := &corev1.PodList{}, &karpv1.NodeClaimList{}, &corev1.NodeList{}
	machines, instances := &clusterv1.MachineList{}, &infrav1.SimulatedMachineList{}
	resources, err := kinds.Resources(ctx, management)
	instancesErr := management.List(ctx, instances, stack.Workers)
	if meta.IsNoMatchError(instancesErr) {
		instancesErr = nil // the stack runs without the simulated infrastructure
	}
	err = errors.Join(
		err,
		instancesErr,
		workload.List(ctx, podList, pods...),
		workload.List(ctx, claims),
		workload.List(ctx, nodes, stack.Workers),
		management.List(ctx, machines, stack.Workers),
	)
	return Census{
		Pods: len(podList.Items),
		Running: lo.CountBy(podList.Items, func(pod corev1.Pod) bool {
			return pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp.IsZero()
		}),
		Claims: len(claims.Items),
		Initialized: lo.CountBy(claims.Items, func(claim karpv1.NodeClaim) bool {
			return claim.StatusConditions().IsTrue(karpv1.ConditionTypeRegistered, karpv1.ConditionTypeInitialized) && claim.DeletionTimestamp.IsZero()
		}),
		Resources: len(resources),
		Replicas:  lo.SumBy(resources, func(r kinds.Resource) int { return r.Replicas }),
		Machines:  len(machines.Items), Instances: len(instances.Items), Nodes: len(nodes.Items),
	}, err
}
