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

// propagate gives each claim the provider ID of its Machine, or its provisional
// one for as long as there is none.
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

// providerID returns the provider ID a claim is to have.
func providerID(claim *karpv1.NodeClaim, snap *snapshot.Snapshot) string {
	// Core has not persisted the launch yet, or its Machine is about to go, or to be
	// released: then nobody else may know it by the same ID.
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
	// Its Machine is going or gone: core tells by the ID that is there.
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
				return nil // it has released the Machine: its going brings the next reconcile
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
	// With the resourceVersion as precondition, so that a claim which was deleted
	// and made again under the same name does not get its predecessor's Machine.
	err := workload.Status().Patch(ctx, changed, client.MergeFromWithOptions(claim, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return nil // the claim is not what it was: its event brings the next reconcile
	}
	if err != nil {
		return fmt.Errorf("setting provider ID %s of NodeClaim %s: %w", want, claim.Name, err)
	}
	log.FromContext(ctx).Info("set provider ID", "NodeClaim", claim.Name, "provider-id", want)
	return nil
}
