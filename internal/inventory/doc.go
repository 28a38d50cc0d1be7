// SPDX-License-Identifier: Apache-2.0

// Package inventory counts how many machines there is room for, from objects in the management cluster that
// capacityFrom of an offering names: hosts, address pools, quotas.
//
// Watches has one watch for each Source, while a template needs it. The watch evaluates the expressions of the
// source when it reads an object, and keeps only the labels and the result. A Count is what the objects say at the
// moment. A Ledger subtracts from it what the NodeClaims and Machines of the served Cluster will still take.
//
// # What is subtracted
//
// Each NodeClaim and each Machine takes one machine from each Pool of its offering, until the objects show that it
// has it. So nothing counts twice:
//
//   - A Machine is subtracted until an object names it as its consumer or, without an expression for the
//     consumer, until it is provisioned. Between the two moments a count without consumers is too low.
//   - A NodeClaim without a Machine is subtracted, unless a spare Machine of its offering will serve it.
//   - A Machine that is leaving takes nothing: its object is free or not, as the object itself says.
//
// The order in which the watches of Machines, NodeClaims and objects deliver does not matter for Machines with
// consumers, because an object names a Machine for as long as the Machine exists.
//
// Machines of other Clusters count from the moment at which an object is no longer free because of them. An
// operator does not see the Machines of other Clusters, so that until then two of them can ask for one object.
//
// # What is not known
//
// A count is valid while the watch is open and each object could be evaluated. Otherwise Watches returns an error,
// nothing is closed, and a condition of the template has the error. All of this is in memory: after a restart the
// first read waits for the objects.
package inventory
