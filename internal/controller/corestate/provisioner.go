// SPDX-License-Identifier: Apache-2.0

package corestate

import (
	"context"
	"iter"

	"github.com/awslabs/operatorpkg/reconciler"
	"github.com/awslabs/operatorpkg/singleton"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/state"

	"github.com/karpenter-capi/karpenter-capi/internal/planner"
)

// Provisioner is core's provisioner, and moves the counts of buffer Pods to the provider
// IDs of the NodeClaims' Machines.
//
// With the feature gate CapacityBuffer, core counts the virtual Pods of
// CapacityBuffers per provider ID after each scheduling pass (karpenter: pkg/
// controllers/provisioning/buffers.go, bufferPodCountsFromResults), and deletes no
// Node as empty that has some (pkg/controllers/disruption/emptiness.go). A count by a
// provisional ID protects nothing after the NodeClaim has its Machine's.
//
// Core's provisioner is the only writer of the counts and replaces all of them. To lose no
// newer pass, the counts are corrected in its goroutine after each round. A round takes a
// second when there is nothing to schedule, and otherwise ends with the pass.
type Provisioner struct {
	*provisioning.Provisioner
	cluster *state.Cluster
}

// NewProvisioner returns a Provisioner for core's provisioner and its cluster state.
func NewProvisioner(core *provisioning.Provisioner, cluster *state.Cluster) *Provisioner {
	return &Provisioner{Provisioner: core, cluster: cluster}
}

// Register adds the provisioner to a manager, like core's provisioner.
func (p *Provisioner) Register(_ context.Context, mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named(p.Name()).
		WatchesRawSource(singleton.Source()).
		Complete(singleton.AsReconciler(p))
}

// Reconcile runs one round of core's provisioner and corrects the counts, even if the round
// fails.
func (p *Provisioner) Reconcile(ctx context.Context) (reconciler.Result, error) {
	result, err := p.Provisioner.Reconcile(ctx)
	if counts, changed := followed(p.cluster.Nodes(), p.cluster.BufferPodCount); changed {
		p.cluster.UpdateBufferPodCounts(counts)
	}
	return result, err
}

// followed returns the counts of all nodes by their current provider IDs, and whether a
// count was moved from the provisional ID of a NodeClaim.
func followed(nodes iter.Seq[*state.StateNode], count func(providerID string) int) (counts map[string]int, changed bool) {
	counts = map[string]int{}
	for node := range nodes {
		id := node.ProviderID()
		if own := count(id); own > 0 {
			counts[id] += own
		}
		if node.NodeClaim == nil {
			continue
		}
		provisional := planner.ProvisionalID(node.NodeClaim.UID)
		if left := count(provisional); left > 0 && id != provisional {
			counts[id] += left
			changed = true
		}
	}
	return counts, changed
}
