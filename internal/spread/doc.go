// SPDX-License-Identifier: Apache-2.0

// Package spread gives the NodeClaims of a NodePool several offerings instead of only the cheapest one, for templates
// with spec.spread.
//
// Package catalog calls Steps for the prices of a template's offerings. Karpenter core gets the result instead of the
// prices: offerings that differ by at most maxPriceIncreasePercent cost the same for it, so consolidation does not
// replace a Node of one of them by one of another. CloudProvider.Create takes the lowest of these prices, as without
// spec.spread, and calls Choose if several offerings have it.
//
// The package is pure. It keeps these invariants:
//   - The price of an offering is at most maxPriceIncreasePercent more than what core compares, and never less.
//   - What core compares keeps the order of prices.
//   - The same values give the same choice, in any order of the calls.
//
// It stores nothing. What it counts are NodeClaims, so a crash has no effect.
package spread
