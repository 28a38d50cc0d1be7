// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDistributionOf(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(100-i) * time.Second
	}
	for name, tc := range map[string]struct {
		durations []time.Duration
		want      distribution
	}{
		"of nothing":              {},
		"of one":                  {durations: hundred[:1], want: distribution{1, 100, 100, 100, 100}},
		"of two":                  {durations: []time.Duration{3 * time.Second, time.Second}, want: distribution{2, 1, 3, 3, 3}},
		"of a hundred, unordered": {durations: hundred, want: distribution{100, 50, 90, 99, 100}},
		"of negative ones":        {durations: []time.Duration{-time.Second, time.Second, -2 * time.Second}, want: distribution{3, -1, 1, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, distributionOf(tc.durations)); diff != "" {
				t.Errorf("distribution (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMedianOf(t *testing.T) {
	for name, tc := range map[string]struct {
		values []float64
		want   float64
	}{
		"of nothing":               {},
		"of an odd number":         {values: []float64{9, 1, 2}, want: 2},
		"of an even number":        {values: []float64{9, 1, 2, 4}, want: 3},
		"not the mean of all runs": {values: []float64{100, 1, 1}, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := medianOf(tc.values, func(value float64) float64 { return value }); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
