// SPDX-License-Identifier: Apache-2.0

package spread

import (
	"cmp"
	"slices"
)

// rounding is by which factor a price can exceed a limit because of the errors of floating point numbers.
const rounding = 1 + 1e-9

// Steps returns what core compares instead of each of some prices. The lowest price begins a step, to which all prices
// belong that are at most maxIncreasePercent higher. The next price begins the next step, and so on. A price becomes the
// lowest one of its step.
func Steps(prices []float64, maxIncreasePercent int32) []float64 {
	order := make([]int, len(prices))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(prices[a], prices[b]) })
	steps := make([]float64, len(prices))
	var lowest, highest float64
	for n, at := range order {
		if n == 0 || prices[at] > highest {
			lowest = prices[at]
			highest = lowest * (1 + float64(maxIncreasePercent)/100) * rounding
		}
		steps[at] = lowest
	}
	return steps
}
