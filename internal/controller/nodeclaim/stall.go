// SPDX-License-Identifier: Apache-2.0

package nodeclaim

import (
	"context"
	"errors"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
)

// reportStalls writes the condition MachineAvailable of each claim whose launch is stalled, once,
// and again when the stall ends. It marks no offering and fails no claim. launchTimeoutSeconds
// counts from the time of the last write. Claims of a Cluster that is being deleted do not wait.
func (r *Reconciler) reportStalls(ctx context.Context, snap *snapshot.Snapshot) error {
	if snap.ClusterDeleting {
		return nil
	}
	var errs []error
	for i := range snap.Claims {
		claim := &snap.Claims[i]
		switch stall := snap.Stall(claim); {
		case stall != nil:
			errs = append(errs, r.reportStall(ctx, claim, stall))
		case snapshot.IsStalled(claim) && snapshot.NeedsMachine(claim):
			errs = append(errs, r.reportResumed(ctx, claim))
		}
	}
	return errors.Join(errs...)
}

func (r *Reconciler) reportStall(ctx context.Context, claim *karpv1.NodeClaim, stall *snapshot.Stall) error {
	changed := claim.DeepCopy()
	if !changed.StatusConditions().SetUnknownWithReason(v1alpha1.ConditionMachineAvailable, stall.Reason, stall.Message) {
		return nil
	}
	if written, err := r.patchStatus(ctx, changed, claim); err != nil || !written {
		return err
	}
	r.recorder.Publish(claimWaits(claim, stall))
	for _, pod := range r.podsOf(claim.Name) {
		r.recorder.Publish(podWaitsForClusterAPI(pod, claim, stall))
	}
	return nil
}

func (r *Reconciler) reportResumed(ctx context.Context, claim *karpv1.NodeClaim) error {
	changed := claim.DeepCopy()
	// The condition is False in between, so that the time of its transition is now.
	conditions := changed.StatusConditions()
	conditions.SetFalse(v1alpha1.ConditionMachineAvailable, v1alpha1.ReasonResumed, "")
	conditions.SetUnknownWithReason(v1alpha1.ConditionMachineAvailable, v1alpha1.ReasonResumed, "Cluster API acts on the Machine of this NodeClaim again")
	_, err := r.patchStatus(ctx, changed, claim)
	return err
}
