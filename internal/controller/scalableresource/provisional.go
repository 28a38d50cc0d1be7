// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"errors"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
)

// resetProviderIDs gives the claims that have lost their Machine, or have no Machine with a provider
// ID yet, their provisional ID. The controller providerid gives them that of their Machine.
func (r *Reconciler) resetProviderIDs(ctx context.Context, snap *decided) error {
	var errs []error
	for claim := range snap.settled() {
		if needsProvisionalID(claim, snap) {
			errs = append(errs, nodeclaims.ResetProviderID(ctx, r.clusters.Workload.GetClient(), claim))
		}
	}
	return errors.Join(errs...)
}

// needsProvisionalID reports whether a claim waits, perhaps for its second Machine, and has another ID
// than its provisional one. A registered claim keeps its ID, whatever happens to its Machine: core finds
// the Node by this ID, and drains it.
func needsProvisionalID(claim *karpv1.NodeClaim, snap *decided) bool {
	if claim.Status.ProviderID == planner.ProvisionalID(claim.UID) || !claim.DeletionTimestamp.IsZero() || !nodeclaims.IsLaunched(claim) ||
		nodeclaims.IsRegistered(claim) {
		return false
	}
	if name, served := snap.Plan.Served[claim.UID]; served {
		return snap.Machines[name].Spec.ProviderID == ""
	}
	// Until a Machine that has lost its instance is marked for deletion, the claim has its ID.
	for _, machine := range snap.LinkedTo(claim.UID) {
		if !lifecycle.IsLeaving(machine) {
			return false
		}
	}
	return true
}
