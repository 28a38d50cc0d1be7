// SPDX-License-Identifier: Apache-2.0

// Package spread measures what spec.spread of a template is for: the share of the Pods that are lost when one spot pool, which
// is one offering, ends.
//
// It runs Karpenter core's own provisioner and consolidation with the operator's CloudProvider, in memory. Nodes join at once.
// TestAPoolEnds prints the shares:
//
//	go test ./test/simulation/spread -run TestAPoolEnds -v
//
// TestConsolidationKeepsTheSpread shows that consolidation replaces no Node, and that it would if core compared what is paid.
package spread
