// SPDX-License-Identifier: Apache-2.0

// Package snapshot reads one scalable resource with its NodeClaims and Machines from the caches,
// with limits, failures and stalls, and has package planner compute the plan. It never writes.
//
// Load is the first step of a reconcile of the controller scalableresource. CloudProvider.Delete and the controller
// machinetemplate use single functions of this package, such as FailureOf and IsStalled.
//
//	limits    LimitReached: the template, the offering or its reservation has no machine left
//	names     NameTaken: the resource was generated from something else than a claim needs
//	failures  Failures: why the machine of a claim could not be launched
//	stalls    Stalls: why Cluster API or a provider does nothing for a claim, which is no failure
//	plan      Plan: links, marks, replicas, what is deletable, and why something is put off
//	due       DueIn: when time alone changes any of these
//
// These always hold:
//
//   - A resource that the operator neither generated nor adopted has no snapshot. Machines of
//     another kind of resource with the same name are left out.
//   - The plan is that of one time and of these objects. Nothing is kept between two snapshots.
//   - The caches may be behind. Callers write with what they have read as precondition, and read from the API server before what cannot be undone.
//   - No claim fails while its launch is stalled.
//
// In special cases:
//
//	the Cluster or the resource is paused  Load returns nil: nothing is done.
//	the Cluster does not exist             Load returns nil.
//	the Cluster is being deleted           No claim needs a Machine or fails, and replicas are never
//	                                       raised. A resource that is paused only in its spec is
//	                                       read nevertheless.
//	the resource is suspended              The plan has the present replicas and nothing else. No
//	                                       claim waits or fails.
//	the resource does not exist            The plan has the replicas to create it with.
package snapshot
