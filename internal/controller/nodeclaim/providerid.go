// SPDX-License-Identifier: Apache-2.0

package nodeclaim

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
)

// propagate gives each claim the provider ID of its Machine, or its provisional ID until the
// Machine has one.
func (r *Reconciler) propagate(ctx context.Context, snap *snapshot.Snapshot) error {
	var errs []error
	for i := range snap.Claims {
		claim := &snap.Claims[i]
		if want := providerID(claim, snap); want != claim.Status.ProviderID {
			errs = append(errs, client.IgnoreNotFound(r.setProviderID(ctx, claim, want)))
		}
	}
	return errors.Join(errs...)
}

// providerID returns the provider ID that a claim should have.
func providerID(claim *karpv1.NodeClaim, snap *snapshot.Snapshot) string {
	// Core has not stored the launch yet, or the claim is being deleted: its Machine is about to be
	// deleted or unlinked, and no second claim may have the same ID.
	if !claim.StatusConditions().Get(karpv1.ConditionTypeLaunched).IsTrue() || !claim.DeletionTimestamp.IsZero() {
		return claim.Status.ProviderID
	}
	if name, served := snap.Plan.Served[claim.UID]; served {
		if id := snap.Machines[name].Spec.ProviderID; id != "" {
			return id
		}
		return planner.ProvisionalID(claim.UID)
	}
	if !claim.StatusConditions().Get(karpv1.ConditionTypeRegistered).IsTrue() {
		return planner.ProvisionalID(claim.UID) // it waits, perhaps for a second Machine
	}
	// Its Machine is being deleted or no longer exists, which core detects by this ID.
	return claim.Status.ProviderID
}

// setProviderID writes the provider ID, unless another claim has it: two claims
// with one ID make Karpenter core fail (pkg/controllers/state/cluster.go,
// cleanupNodeClaim).
func (r *Reconciler) setProviderID(ctx context.Context, claim *karpv1.NodeClaim, want string) error {
	workload := r.clusters.Workload.GetClient()
	others := &karpv1.NodeClaimList{}
	if err := workload.List(ctx, others, client.MatchingFields{operator.NodeClaimProviderIDField: want}); err != nil {
		return fmt.Errorf("listing NodeClaims with provider ID %s: %w", want, err)
	}
	for i := range others.Items {
		if other := &others.Items[i]; other.UID != claim.UID {
			if !other.DeletionTimestamp.IsZero() {
				return nil // its Machine was unlinked: the event of its deletion triggers the next reconcile
			}
			return fmt.Errorf("NodeClaim %s cannot have provider ID %s: NodeClaim %s has it", claim.Name, want, other.Name)
		}
	}
	changed := claim.DeepCopy()
	changed.Status.ProviderID = want
	// It has its Machine, whatever it waited for: Cluster API, a limit, or an offering that failed.
	waited := snapshot.HasWaited(claim) || claim.StatusConditions().Get(v1alpha1.ConditionMachineAvailable).IsFalse()
	if _, provisional := planner.ParseProvisionalID(want); !provisional && waited {
		changed.StatusConditions().SetTrue(v1alpha1.ConditionMachineAvailable)
	}
	// The resourceVersion is the precondition, so that a claim that was created again with the
	// same name does not get the Machine of its predecessor.
	err := workload.Status().Patch(ctx, changed, client.MergeFromWithOptions(claim, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return nil // the claim has changed, and its event triggers the next reconcile
	}
	if err != nil {
		return fmt.Errorf("setting provider ID %s of NodeClaim %s: %w", want, claim.Name, err)
	}
	log.FromContext(ctx).Info("set provider ID", "NodeClaim", claim.Name, "provider-id", want)
	return nil
}
