// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"time"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/failure"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
)

// LimitReached is the failure of a claim for which its template, its offering or its reservation has
// no machine left. Karpenter launches many claims at once, so some can exceed a limit. The oldest
// claims get Machines.
const LimitReached failure.Kind = v1alpha1.ReasonLimitReached

// limitPoll is the time after which a claim that exceeds a limit is checked again.
const limitPoll = time.Minute

// readLimits finds the claims that exceed a limit. A claim that has a Machine keeps it, also if the
// limit was lowered since.
func (s *Snapshot) readLimits(ctx context.Context, clusters *operator.Clusters, known *catalog.Catalog) error {
	if s.Template == nil || len(s.Claims) == 0 {
		return nil
	}
	limits, err := known.Limits(ctx, s.Template)
	if err != nil || limits.None() {
		return err
	}
	claims, err := catalog.ClaimsThatCount(ctx, clusters, s.Template, limits)
	if err != nil {
		return err
	}
	s.exceeding = catalog.Exceeding(claims, limits)
	for _, machine := range s.Machines {
		s.exceeding.Delete(s.claimOf(machine))
	}
	return nil
}
