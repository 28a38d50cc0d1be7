// SPDX-License-Identifier: Apache-2.0

package spread

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/karpenter-capi/karpenter-capi/test/harness/property"
)

// shares launches NodeClaims one after the other, and returns how many each candidate has then.
func shares(candidates []Candidate, launches int) []int {
	candidates = slices.Clone(candidates)
	for range launches {
		candidates[Choose(candidates)].NodeClaims++
	}
	counts := make([]int, len(candidates))
	for i := range candidates {
		counts[i] = candidates[i].NodeClaims
	}
	return counts
}

func TestChoose(t *testing.T) {
	for name, tc := range map[string]struct {
		candidates []Candidate
		launches   int
		want       []int
	}{
		"the first of equal ones":                  {candidates: []Candidate{{Price: 1}, {Price: 1}}, launches: 1, want: []int{1, 0}},
		"the cheapest first":                       {candidates: []Candidate{{Price: 1.1}, {Price: 1}}, launches: 1, want: []int{0, 1}},
		"equal shares":                             {candidates: []Candidate{{Price: 1}, {Price: 1}, {Price: 1}}, launches: 9, want: []int{3, 3, 3}},
		"shares by price":                          {candidates: []Candidate{{Price: 1}, {Price: 2}}, launches: 30, want: []int{20, 10}},
		"half after a failure":                     {candidates: []Candidate{{Price: 1}, {Price: 1, Failures: 1}}, launches: 30, want: []int{20, 10}},
		"a quarter after two":                      {candidates: []Candidate{{Price: 1}, {Price: 1, Failures: 2}}, launches: 50, want: []int{40, 10}},
		"those with fewer first":                   {candidates: []Candidate{{Price: 1, NodeClaims: 4}, {Price: 1}}, launches: 5, want: []int{5, 4}},
		"prices of zero":                           {candidates: []Candidate{{}, {}}, launches: 4, want: []int{2, 2}},
		"free of charge beside one that is not":    {candidates: []Candidate{{}, {Price: 1}}, launches: 4, want: []int{2, 2}},
		"so many failures that nothing is left":    {candidates: []Candidate{{Price: 1, Failures: 5000}, {Price: 1}}, launches: 4, want: []int{0, 4}},
		"only one, with so many failures":          {candidates: []Candidate{{Price: 1, Failures: 5000}}, launches: 2, want: []int{2}},
		"as expected for a limit of 20 percent":    {candidates: []Candidate{{Price: 1}, {Price: 1.1}, {Price: 1.2}}, launches: 33, want: []int{12, 11, 10}},
		"one that has more than its share already": {candidates: []Candidate{{Price: 1, NodeClaims: 90}, {Price: 1}, {Price: 1}}, launches: 10, want: []int{90, 5, 5}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, shares(tc.candidates, tc.launches)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// No candidate ever has more than one NodeClaim more than its weight allows in comparison with any other.
func TestChooseProperties(t *testing.T) {
	property.Check(t, 1000, func(t *rapid.T) {
		candidates := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Candidate {
			return Candidate{Price: float64(rapid.IntRange(1, 4000).Draw(t, "price")) / 1000, Failures: rapid.Int32Range(0, 4).Draw(t, "failures")}
		}), 1, 12).Draw(t, "candidates")
		lowest := candidates[0].Price
		for _, candidate := range candidates {
			lowest = min(lowest, candidate.Price)
		}
		counts := shares(candidates, rapid.IntRange(0, 200).Draw(t, "launches"))
		for i := range candidates {
			for j := range candidates {
				has, allowed := float64(counts[i])/candidates[i].weight(lowest), float64(counts[j]+1)/candidates[j].weight(lowest)
				if i != j && has > allowed*(1+1e-9) {
					t.Fatalf("%+v has %d NodeClaims beside %+v with %d", candidates[i], counts[i], candidates[j], counts[j])
				}
			}
		}
	})
}
