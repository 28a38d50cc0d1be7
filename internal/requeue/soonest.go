// SPDX-License-Identifier: Apache-2.0

// Package requeue has helpers with which reconcilers decide about their next reconcile.
package requeue

import "time"

// Soonest returns the shortest of the positive durations, or zero if none is positive. A
// duration that is zero or negative is nothing to wait for.
//
// Karpenter's result.Min does the same for results, but sets their deprecated Requeue.
func Soonest(durations ...time.Duration) time.Duration {
	soonest := time.Duration(0)
	for _, d := range durations {
		if d > 0 && (soonest == 0 || d < soonest) {
			soonest = d
		}
	}
	return soonest
}
