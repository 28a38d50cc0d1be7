// SPDX-License-Identifier: Apache-2.0

// Package snapshot reads one scalable resource with its NodeClaims and Machines from the caches. It decides nothing and writes
// nothing: package planner decides from the values that it returns.
//
// Read is the first step of a reconcile of the controller scalableresource. ReadMachine reads one Machine for
// CloudProvider.Delete. ClaimOf, MachineOf, NodeOf and SetOf return what an object itself shows, and an event matters if it
// changes that (package enqueue). The rest of a state is what other objects show: limits, infrastructure and bootstrap
// objects, Nodes.
//
// These always hold:
//
//   - A resource that the operator neither generated nor adopted has no snapshot. Machines of
//     another kind of resource with the same name are left out.
//   - The state is that of one time and of these objects. Nothing is kept between two snapshots.
//   - The caches may be behind. Callers write with what they have read as precondition, and read from the API server before
//     what cannot be undone.
//
// In special cases:
//
//	the Cluster or the resource is paused  Read returns nil: nothing is done.
//	the Cluster does not exist             Read returns nil.
//	the Cluster is being deleted           A resource that is paused only in its spec is read nevertheless.
package snapshot
