// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"errors"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
)

// reportStalls writes the condition MachineAvailable of each claim whose launch is stalled, once,
// and again when the stall ends. It marks no offering and fails no claim. launchTimeoutSeconds
// counts from the time of the last write.
func (r *Reconciler) reportStalls(ctx context.Context, snap *decided) error {
	var errs []error
	for claim := range snap.settled() {
		switch outcome := snap.Plan.Outcomes[claim.UID]; {
		case outcome.Stall != (planner.Stall{}):
			errs = append(errs, r.reportStall(ctx, claim, outcome.Stall))
		case outcome.Resumes:
			errs = append(errs, nodeclaims.Resume(ctx, r.clusters.Workload.GetClient(), claim))
		}
	}
	return errors.Join(errs...)
}

func (r *Reconciler) reportStall(ctx context.Context, claim *karpv1.NodeClaim, stall planner.Stall) error {
	written, err := nodeclaims.Stall(ctx, r.clusters.Workload.GetClient(), claim, stall.Reason, stall.Message)
	if err != nil || !written {
		return err
	}
	r.recorder.Publish(claimWaits(claim, stall))
	for _, pod := range r.podsOf(claim.Name) {
		r.recorder.Publish(podWaitsForClusterAPI(pod, claim, stall))
	}
	return nil
}
