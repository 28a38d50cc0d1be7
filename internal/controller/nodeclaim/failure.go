// SPDX-License-Identifier: Apache-2.0

package nodeclaim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/failure"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
)

// handleFailures handles the claims whose machine could not be had, in steps that each follow
// from what the API server has, so that it can stop after any of them:
//
//  1. The offering is marked as unavailable, in the template's status.
//  2. When the cache shows the mark, so that no new claim gets the same offering,
//     the failure is told: a condition on the claim, events.
//  3. The claim is deleted, and Karpenter makes another for its Pods. A claim
//     without a NodePool, which nobody would make again, moves to another offering.
//
// It returns after what time to look again; zero for no time.
func (r *Reconciler) handleFailures(ctx context.Context, snap *snapshot.Snapshot) (time.Duration, error) {
	var errs []error
	var again time.Duration
	marking := false
	for i := range snap.Claims {
		claim := &snap.Claims[i]
		failed := snap.Failure(claim)
		if failed == nil {
			continue
		}
		until, marked := r.unavailableUntil(claim, snap)
		_, pooled := claim.Labels[karpv1.NodePoolLabelKey]
		switch {
		case failed.Kind == snapshot.LimitReached && pooled:
			// Its offering has not failed: nothing is marked.
			errs = append(errs, r.replace(ctx, claim, failed))
		case failed.Kind == snapshot.LimitReached:
			// Nobody would make it again: it waits.
			_, err := r.recordFailure(ctx, claim, failed)
			errs = append(errs, err)
		case !marked && (pooled || !isRecorded(claim)):
			if marking {
				continue // one mark is enough for all claims of the offering
			}
			retry, err := r.markUnavailable(ctx, claim, failed, snap)
			marking, again = true, requeue.Soonest(retry, again)
			errs = append(errs, err)
		case pooled:
			errs = append(errs, r.replace(ctx, claim, failed))
		default:
			moved, err := r.relaunch(ctx, claim, failed, snap)
			errs = append(errs, err)
			if !moved {
				again = requeue.Soonest(again, until.Sub(snap.Now))
			}
		}
	}
	return again, errors.Join(errs...)
}

// isRecorded reports whether a failure of a claim has been handled as far as it could be. A limit
// that the claim waited for is no failure of its offering.
func isRecorded(claim *karpv1.NodeClaim) bool {
	condition := claim.StatusConditions().Get(v1alpha1.ConditionMachineAvailable)
	return condition.IsFalse() && condition.Reason != string(snapshot.LimitReached)
}

// replace tells of a failure and deletes the claim.
func (r *Reconciler) replace(ctx context.Context, claim *karpv1.NodeClaim, failed *failure.Failure) error {
	told, err := r.recordFailure(ctx, claim, failed)
	if err != nil || !told {
		return err
	}
	return r.delete(ctx, claim, failed.Message)
}

// unavailableUntil returns until when a claim's offering is marked as unavailable. Of a
// template that is gone nothing can be launched, which is as good.
func (r *Reconciler) unavailableUntil(claim *karpv1.NodeClaim, snap *snapshot.Snapshot) (time.Time, bool) {
	if snap.Template == nil {
		return time.Time{}, true
	}
	return r.catalog.MarkedUntil(snap.Template, catalog.KeyOf(claim), snap.Now)
}

// markAgainAfter is after what time a mark is tried again that met with a conflict:
// other offerings of the template can fail in the same moment.
const markAgainAfter = time.Second

// markUnavailable writes that a claim's offering is unavailable. The event of that write
// brings the next reconcile. It returns after what time to try again; zero if it is
// written.
func (r *Reconciler) markUnavailable(ctx context.Context, claim *karpv1.NodeClaim, failed *failure.Failure, snap *snapshot.Snapshot) (time.Duration, error) {
	offering := catalog.KeyOf(claim)
	mark := v1alpha1.UnavailableOffering{
		InstanceType: offering.InstanceType,
		Zone:         offering.Zone,
		CapacityType: offering.CapacityType,
		Reason:       string(failed.Kind),
		Message:      failed.Message,
	}
	marked := snap.Template.DeepCopy()
	marked.Status.UnavailableOfferings = catalog.MarkUnavailable(marked.Status.UnavailableOfferings, mark, snap.Now)
	err := r.clusters.Workload.GetClient().Status().Patch(ctx, marked, client.MergeFromWithOptions(snap.Template, client.MergeFromWithOptimisticLock{}))
	if requeue.IsChanged(err) {
		return markAgainAfter, nil
	}
	r.recorder.Publish(offeringUnavailable(marked, offering, failed))
	if err != nil {
		// If it fails again, the claims are replaced all the same, and their successors get
		// other offerings.
		r.catalog.Mark(snap.Template, mark, snap.Now)
		return 0, fmt.Errorf("marking offering %s of KarpenterMachineTemplate %s as unavailable: %w", offering, marked.Name, err)
	}
	return 0, nil
}

// recordFailure writes the failure on the claim, and tells of it with events. It returns
// false if the claim is not what it was.
func (r *Reconciler) recordFailure(ctx context.Context, claim *karpv1.NodeClaim, failed *failure.Failure) (bool, error) {
	changed := claim.DeepCopy()
	if changed.StatusConditions().SetFalse(v1alpha1.ConditionMachineAvailable, string(failed.Kind), failed.Message) {
		if told, err := r.patchStatus(ctx, changed, claim); err != nil || !told {
			return told, err
		}
	}
	offering := catalog.KeyOf(claim)
	r.recorder.Publish(claimFailed(claim, offering, failed))
	for _, pod := range r.podsOf(claim.Name) {
		r.recorder.Publish(podWaits(pod, claim, offering, failed))
	}
	return true, nil
}

// patchStatus writes the status of a claim, and returns false if the claim is not
// what it was: its event brings the next reconcile.
func (r *Reconciler) patchStatus(ctx context.Context, changed, claim *karpv1.NodeClaim) (bool, error) {
	err := r.clusters.Workload.GetClient().Status().Patch(ctx, changed, client.MergeFromWithOptions(claim, client.MergeFromWithOptimisticLock{}))
	if requeue.IsChanged(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("patching the status of NodeClaim %s: %w", claim.Name, err)
	}
	return true, nil
}
