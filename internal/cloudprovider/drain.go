// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	nodeutils "sigs.k8s.io/karpenter/pkg/utils/node"
	podutils "sigs.k8s.io/karpenter/pkg/utils/pod"

	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
)

// isDrained reports whether Cluster API need not drain a Machine: no Node of it has Pods for whose
// eviction Karpenter waits (karpenter: pkg/controllers/node/termination/terminator/terminator.go,
// Drain), or the terminationGracePeriod of its claim is over.
//
// Core drains the Node before it calls Delete, if it finds one: by the provider ID of the claim, and
// only after it has registered the Node.
func (c *CloudProvider) isDrained(ctx context.Context, claim *karpv1.NodeClaim, machine *clusterv1.Machine) (bool, error) {
	if c.isTerminated(claim) {
		return true, nil
	}
	nodes, err := c.nodesOf(ctx, claim, machine)
	if err != nil {
		return false, err
	}
	pods, err := nodeutils.GetPods(ctx, c.clusters.Workload.GetClient(), nodes...)
	if err != nil {
		return false, fmt.Errorf("listing the Pods of Machine %s: %w", client.ObjectKeyFromObject(machine), err)
	}
	return !slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return podutils.IsWaitingEviction(pod, coreClock{passive: c.clock}) }), nil
}

// isTerminated reports whether the time is over at which core ends a claim whether or not its Node is
// drained.
func (c *CloudProvider) isTerminated(claim *karpv1.NodeClaim) bool {
	at, known := timestamp.Of(claim, karpv1.NodeClaimTerminationTimestampAnnotationKey)
	return known && c.clock.Now().After(at)
}

// nodesOf returns the names of the Nodes of a Machine and its claim. Usually that is one Node. If a
// provider has changed the ID of the Machine, or a user that of the claim, not all of its names and IDs
// lead to it.
func (c *CloudProvider) nodesOf(ctx context.Context, claim *karpv1.NodeClaim, machine *clusterv1.Machine) ([]string, error) {
	workload := c.clusters.Workload.GetClient()
	var names []string
	for _, name := range []string{machine.Status.NodeRef.Name, claim.Status.NodeName} {
		err := workload.Get(ctx, types.NamespacedName{Name: name}, &corev1.Node{})
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("getting Node %s: %w", name, err)
		}
		if err == nil {
			names = append(names, name)
		}
	}
	ids := []string{machine.Spec.ProviderID, claim.Status.ProviderID}
	for _, id := range slices.DeleteFunc(ids, func(id string) bool { return id == "" }) {
		nodes := &corev1.NodeList{}
		if err := workload.List(ctx, nodes, client.MatchingFields{"spec.providerID": id}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing the Nodes with provider ID %s: %w", id, err)
		}
		for i := range nodes.Items {
			names = append(names, nodes.Items[i].Name)
		}
	}
	return lo.Uniq(names), nil
}

// coreClock is the clock of this process, as core's functions take it.
type coreClock struct {
	clock.RealClock
	passive clock.PassiveClock
}

// Now returns the time.
func (c coreClock) Now() time.Time { return c.passive.Now() }

// Since returns the time that has passed.
func (c coreClock) Since(t time.Time) time.Duration { return c.passive.Since(t) }
