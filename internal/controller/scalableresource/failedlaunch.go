// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"errors"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/budget"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/link"
	"github.com/karpenter-capi/karpenter-capi/internal/failure"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
)

// handleFailures handles the claims whose machine could not be launched. Each step depends only on
// what the API server has, so a crash can follow any of them:
//
//  1. Mark the offering as unavailable in the status of the template.
//  2. When the cache has the mark, so that no new claim gets the same offering, report the
//     failure with a condition of the claim and with events.
//  3. Delete the claim, so that Karpenter creates another for its Pods. Nothing replaces a claim
//     without a NodePool, and core deletes such a claim, too, if its launch fails at once (karpenter:
//     pkg/controllers/nodeclaim/lifecycle/launch.go).
func (r *Reconciler) handleFailures(ctx context.Context, snap *decided) error {
	var errs []error
	marking := false
	for claim := range snap.settled() {
		why := snap.Plan.Outcomes[claim.UID].Failure
		if why == (failure.Failure{}) {
			continue
		}
		failed := &why
		switch {
		case !isOfOffering(failed.Kind) || r.isMarked(claim, snap):
			errs = append(errs, r.replace(ctx, claim, failed))
		case !marking: // one mark is enough for all claims of the offering
			marking = true
			errs = append(errs, r.markFailed(ctx, claim, failed, snap))
		}
	}
	return errors.Join(errs...)
}

// isOfOffering reports whether a failure of a kind is one of the claim's offering, so that others can have the
// same. A limit is reached by other claims, and another resource can have the name only of one revision.
func isOfOffering(kind failure.Kind) bool {
	return kind != planner.LimitReached && kind != planner.NameTaken
}

// replace reports a failure and deletes the claim.
func (r *Reconciler) replace(ctx context.Context, claim *karpv1.NodeClaim, failed *failure.Failure) error {
	if err := r.recordFailure(ctx, claim, failed); err != nil {
		return err
	}
	return nodeclaims.Delete(ctx, r.clusters.Workload.GetClient(), claim, failed.Message)
}

// isMarked reports whether a claim's offering is marked as unavailable. A template that no longer exists needs no mark,
// because nothing can be launched with it.
func (r *Reconciler) isMarked(claim *karpv1.NodeClaim, snap *decided) bool {
	return snap.Template == nil || r.catalog.IsMarked(snap.Template, catalog.KeyOf(claim), snap.State.Now)
}

// markFailed marks a claim's offering as unavailable, unless the API server shows that it has not failed.
func (r *Reconciler) markFailed(ctx context.Context, claim *karpv1.NodeClaim, failed *failure.Failure, snap *decided) error {
	if failed.Kind == planner.LaunchTimeout {
		if launched, err := r.isLaunched(ctx, claim, snap); err != nil || launched {
			return err
		}
	}
	return r.markUnavailable(ctx, claim, failed, snap)
}

// isLaunched reports whether the Machine of a claim has a provider ID or a Node by now, according to the API
// server. A watch can be open and deliver nothing, and then only the cache lacks it. The Machine is used as
// it was read, so that the next reconcile does not decide the same again.
func (r *Reconciler) isLaunched(ctx context.Context, claim *karpv1.NodeClaim, snap *decided) (bool, error) {
	machine := snap.Machines[snap.Plan.Served[claim.UID]]
	if machine == nil {
		return false, nil
	}
	live, err := link.ReadMachine(ctx, r.clusters.Management.GetAPIReader(), machine)
	if err != nil || live == nil || live.Spec.ProviderID == "" && !lifecycle.HasNode(live) {
		return false, err
	}
	r.links.Remember(snap.Name, live)
	return true, nil
}

// markUnavailable marks a claim's offering as unavailable. The event of that write triggers the
// next reconcile. It returns a conflict if the template has changed: other offerings can fail at the
// same time.
func (r *Reconciler) markUnavailable(ctx context.Context, claim *karpv1.NodeClaim, failed *failure.Failure, snap *decided) error {
	offering := catalog.KeyOf(claim)
	marked, err := r.catalog.Mark(ctx, snap.Template, snap.State.Now, offering.Unavailable(string(failed.Kind), failed.Brief(budget.Mark)))
	if !requeue.IsChanged(err) {
		r.recorder.Publish(offeringUnavailable(marked, offering, failed))
	}
	return err
}

// recordFailure writes the failure on the claim and reports it with events.
func (r *Reconciler) recordFailure(ctx context.Context, claim *karpv1.NodeClaim, failed *failure.Failure) error {
	if err := nodeclaims.Fail(ctx, r.clusters.Workload.GetClient(), claim, string(failed.Kind), failed.Message); err != nil {
		return err
	}
	offering := catalog.KeyOf(claim)
	r.recorder.Publish(claimFailed(claim, offering, failed))
	for _, pod := range r.podsOf(claim.Name) {
		r.recorder.Publish(podWaits(pod, claim, offering, failed))
	}
	return nil
}
