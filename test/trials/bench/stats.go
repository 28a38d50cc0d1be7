// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"math"
	"slices"
	"time"
)

// distribution describes how durations are distributed, in seconds.
type distribution struct {
	Count int     `json:"count"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

// distributionOf describes durations. Each percentile is one of them: the smallest that is not exceeded by that share of
// all.
func distributionOf(durations []time.Duration) distribution {
	if len(durations) == 0 {
		return distribution{}
	}
	sorted := slices.Sorted(slices.Values(durations))
	at := func(percent float64) float64 {
		rank := int(math.Ceil(percent / 100 * float64(len(sorted))))
		return sorted[max(rank, 1)-1].Seconds()
	}
	return distribution{Count: len(sorted), P50: at(50), P90: at(90), P99: at(99), Max: at(100)}
}

// medianOf returns the median of a figure of each item, which is the mean of the two in the middle if the number of items
// is even. It returns 0 without items.
func medianOf[T any](items []T, figure func(T) float64) float64 {
	if len(items) == 0 {
		return 0
	}
	values := make([]float64, 0, len(items))
	for _, item := range items {
		values = append(values, figure(item))
	}
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 1 {
		return values[middle]
	}
	return (values[middle-1] + values[middle]) / 2
}
