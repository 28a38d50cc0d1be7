// SPDX-License-Identifier: Apache-2.0

package spread

import (
	"cmp"
	"math"
	"slices"
)

// Candidate is an offering with which a NodeClaim can be launched.
type Candidate struct {
	// Price is what is paid for it.
	Price float64
	// NodeClaims is how many NodeClaims of the same NodePool have it.
	NodeClaims int
	// Failures is how many times in a row it has failed or was interrupted, as far as that still counts.
	Failures int32
}

// Choose returns the index of the candidate for the next NodeClaim. The weight of a candidate is the lowest price divided by
// its own, and half of that for each failure. The next NodeClaim gets the candidate with the fewest NodeClaims in
// proportion to its weight, with the NodeClaim itself; of equal ones, the first. So the shares follow the weights.
func Choose(candidates []Candidate) int {
	lowest := slices.MinFunc(candidates, func(a, b Candidate) int { return cmp.Compare(a.Price, b.Price) }).Price
	best, least := 0, math.Inf(1)
	for i, candidate := range candidates {
		if load := float64(candidate.NodeClaims+1) / candidate.weight(lowest); load < least {
			best, least = i, load
		}
	}
	return best
}

// weight returns the weight of a candidate. If the lowest price is zero, prices do not count.
func (c Candidate) weight(lowest float64) float64 {
	weight := 1.0
	if lowest > 0 {
		weight = lowest / c.Price
	}
	return math.Ldexp(weight, -int(c.Failures))
}
