// SPDX-License-Identifier: Apache-2.0

package spread

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/karpenter-capi/karpenter-capi/test/harness/property"
)

func TestSteps(t *testing.T) {
	for name, tc := range map[string]struct {
		prices  []float64
		percent int32
		want    []float64
	}{
		"none":                             {percent: 20, want: []float64{}},
		"one":                              {prices: []float64{0.1}, percent: 20, want: []float64{0.1}},
		"within the limit":                 {prices: []float64{0.1, 0.11, 0.12}, percent: 20, want: []float64{0.1, 0.1, 0.1}},
		"beyond it":                        {prices: []float64{0.1, 0.11, 0.121}, percent: 20, want: []float64{0.1, 0.1, 0.121}},
		"the limit is that of the lowest":  {prices: []float64{0.1, 0.115, 0.13, 0.15}, percent: 20, want: []float64{0.1, 0.1, 0.13, 0.13}},
		"in any order":                     {prices: []float64{0.15, 0.1, 0.13, 0.115}, percent: 20, want: []float64{0.13, 0.1, 0.13, 0.1}},
		"only equal prices":                {prices: []float64{0.1, 0.1000001, 0.1}, percent: 0, want: []float64{0.1, 0.1000001, 0.1}},
		"twice the price":                  {prices: []float64{0.1, 0.2, 0.21}, percent: 100, want: []float64{0.1, 0.1, 0.21}},
		"exactly the limit, not rounded":   {prices: []float64{0.07, 0.077, 0.7, 0.77}, percent: 10, want: []float64{0.07, 0.07, 0.7, 0.7}},
		"free of charge, and next to that": {prices: []float64{0, 1e-7, 0}, percent: 300, want: []float64{0, 1e-7, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Steps(tc.prices, tc.percent)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What core compares is one of the prices, never more than the price, and less by at most the limit. It keeps the order of
// prices, and nothing changes if it is computed from itself.
func TestStepsProperties(t *testing.T) {
	property.Check(t, 2000, func(t *rapid.T) {
		prices := rapid.SliceOfN(rapid.Map(rapid.IntRange(0, 5000), func(n int) float64 { return float64(n) / 1000 }), 0, 40).Draw(t, "prices")
		percent := rapid.Int32Range(0, 300).Draw(t, "percent")
		steps := Steps(prices, percent)
		for i, price := range prices {
			switch {
			case !slices.Contains(prices, steps[i]):
				t.Fatalf("%v becomes %v, which is no price", price, steps[i])
			case steps[i] > price:
				t.Fatalf("%v becomes %v, which is more", price, steps[i])
			case price > steps[i]*(1+float64(percent)/100)*(1+1e-8):
				t.Fatalf("%v becomes %v, which is less by more than %d percent", price, steps[i], percent)
			}
			for j, other := range prices {
				if price < other && steps[i] > steps[j] {
					t.Fatalf("%v becomes %v and %v becomes %v: the order changes", price, steps[i], other, steps[j])
				}
			}
		}
		if diff := cmp.Diff(steps, Steps(steps, percent)); diff != "" {
			t.Fatalf("computed from itself (-want +got):\n%s", diff)
		}
	})
}

// Of any offerings that fit a NodeClaim, those that cost least for core cost at most the limit more than the cheapest one.
func TestTheLimitHoldsForAnyChoice(t *testing.T) {
	property.Check(t, 2000, func(t *rapid.T) {
		prices := rapid.SliceOfN(rapid.Map(rapid.IntRange(1, 500), func(n int) float64 { return float64(n) / 1000 }), 1, 20).Draw(t, "prices")
		percent := rapid.Int32Range(0, 300).Draw(t, "percent")
		steps := Steps(prices, percent)
		fitting := rapid.SliceOfN(rapid.IntRange(0, len(prices)-1), 1, len(prices)).Draw(t, "fitting")
		cheapest, step := prices[fitting[0]], steps[fitting[0]]
		for _, at := range fitting {
			cheapest, step = min(cheapest, prices[at]), min(step, steps[at])
		}
		for _, at := range fitting {
			if steps[at] == step && prices[at] > cheapest*(1+float64(percent)/100)*(1+1e-8) {
				t.Fatalf("an offering that costs %v can be chosen instead of one that costs %v, with a limit of %d percent", prices[at], cheapest, percent)
			}
		}
	})
}
