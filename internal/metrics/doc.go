// SPDX-License-Identifier: Apache-2.0

// Package metrics has all metrics of this operator: what each is called, its labels, and the question that it answers.
// Other packages set them, and docs/reference/metrics.md is generated from them. Names begin with karpenter_capi_, so that
// they cannot be those of Karpenter core.
//
// The number of series is bounded by what is in the lists of labels: a label has few values, or the name of an object of which
// there are few. No label has the name of a NodeClaim, Machine or Node.
//
// The package stores nothing that outlives the process: counters begin at 0 after a restart.
package metrics
