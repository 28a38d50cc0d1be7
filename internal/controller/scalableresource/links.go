// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"time"

	"github.com/karpenter-capi/karpenter-capi/internal/controller/link"
)

// startLinks asks for the links of the plan. Package link writes them, while this and other reconciles go on. It asks
// for none while the plan lacks lower replicas, and returns the time until the next attempt.
func (r *Reconciler) startLinks(ctx context.Context, snap *decided) (time.Duration, error) {
	if len(snap.Plan.Links) == 0 {
		return 0, nil
	}
	if seen, err := r.memory.of(snap.Name).lowered.isSeen(ctx, r.clusters.Management.GetAPIReader(), snap.Resource); err != nil || !seen {
		return time.Second, err
	}
	for _, planned := range snap.Plan.Links {
		r.links.Start(link.Request{
			Resource: snap.Name,
			Claim:    link.Object{Name: planned.Claim.Name, UID: planned.Claim.UID},
			Machine:  link.Object{Name: planned.Machine, UID: snap.Machines[planned.Machine].UID},
		})
	}
	return 0, nil
}
