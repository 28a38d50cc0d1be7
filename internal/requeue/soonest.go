// SPDX-License-Identifier: Apache-2.0

// Package requeue has helpers with which reconcilers decide about their next reconcile.
package requeue

import (
	"time"

	"github.com/samber/lo"
)

// Soonest returns the shortest of the positive durations, or zero if none is positive. A
// duration that is zero or negative is nothing to wait for.
//
// Karpenter's result.Min does the same for results, but sets their deprecated Requeue.
func Soonest(durations ...time.Duration) time.Duration {
	return lo.Min(lo.Filter(durations, func(d time.Duration, _ int) bool { return d > 0 }))
}
