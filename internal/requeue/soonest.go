// SPDX-License-Identifier: Apache-2.0

// Package requeue has what reconcilers need to ask for their next reconcile.
package requeue

import (
	"time"

	"github.com/samber/lo"
)

// Soonest returns the shortest of the durations that are positive: a reconciler has
// nothing to wait for where one is zero or has passed. It returns zero if none is.
//
// Karpenter's result.Min does the same with results, and sets their deprecated Requeue.
func Soonest(durations ...time.Duration) time.Duration {
	return lo.Min(lo.Filter(durations, func(d time.Duration, _ int) bool { return d > 0 }))
}
