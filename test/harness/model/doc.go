// SPDX-License-Identifier: Apache-2.0

// Package model has the decisions of Cluster API v1.14 about a MachineDeployment with strategy
// OnDelete and deletion order Newest, as pure functions: how many replicas its MachineSet gets,
// how many Machines the MachineSet creates, and which it deletes.
//
// The simulation of plans in internal/planner and the crash search use it; test/integration
// compares it with Cluster API's own reconcilers. The functions decide by what a controller sees,
// which can be older than the actual state.
//
// It does not cover missing templates, pauses, remediation and in-place updates.
//
// MachinePool is what providers do with the replicas of a MachinePool, on which Cluster API itself
// does not act. The simulated infrastructure uses it.
//
// The tests search all interleavings of a small MachinePool with such a provider and with the
// operator's own decisions (poolsearch_test.go): no instance of a live claim may be removed, and from
// every state each claim must be able to get its Machine, and everything else to end. After an outage
// of the management cluster, each cache recovers at a time of its own (poolrecovery_test.go): the
// operator's of the MachinePool and of Machines, the provider's of replicas and of marks, and that of
// Cluster API's controller of MachinePools, which can create a Machine for an instance that no longer
// exists. Times are not numbers there: the last disturbance is recent, older than the longest backoff,
// or older than that and the margin. While a cache has not recovered, any wait of the operator for it
// can be over.
package model
