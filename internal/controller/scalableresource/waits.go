// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"errors"
	"time"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
)

// waitInterval is the least time between two reports of what the Machine of one claim waits for. Some providers change their
// messages at each attempt.
const waitInterval = 5 * time.Minute

// reportWaits writes the condition MachineReady of each claim whose Machine or Node takes longer than usual, and again when
// the Node has registered. It returns the time until the next report; zero if all are written.
func (r *Reconciler) reportWaits(ctx context.Context, snap *decided) (time.Duration, error) {
	workload, told := r.clusters.Workload.GetClient(), &r.memory.of(snap.Name).told
	*told = lo.PickBy(*told, func(_ types.UID, at time.Time) bool { return snap.State.Now.Before(at.Add(waitInterval)) })
	var again time.Duration
	var errs []error
	for claim := range snap.settled() {
		outcome := snap.Plan.Outcomes[claim.UID]
		if outcome.Arrived != "" {
			errs = append(errs, nodeclaims.Ready(ctx, workload, claim, outcome.Arrived))
		}
		if outcome.Waits.Reason == "" {
			continue
		}
		if at, recently := (*told)[claim.UID]; recently {
			again = requeue.Soonest(again, at.Add(waitInterval).Sub(snap.State.Now))
			continue
		}
		err := nodeclaims.Wait(ctx, workload, claim, outcome.Waits.Reason, outcome.Waits.Message)
		if err == nil {
			*told = lo.Assign(*told, map[types.UID]time.Time{claim.UID: snap.State.Now})
		}
		errs = append(errs, err)
	}
	return again, errors.Join(errs...)
}
