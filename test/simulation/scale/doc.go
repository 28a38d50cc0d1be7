// SPDX-License-Identifier: Apache-2.0

// Package scale shows that a reconcile takes time and memory in proportion to the number of claims and
// Machines of its scalable resource. TestReconcileIsLinear counts how often statements of the operator
// are executed, TestReconcileAllocatesLittle counts allocations, and BenchmarkReconcile measures:
//
//	go test ./test/simulation/scale -run '^$' -bench Reconcile
package scale
