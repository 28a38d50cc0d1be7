// SPDX-License-Identifier: Apache-2.0

// Package nodeclaim links Machines to NodeClaims, and handles launches that are stalled or have
// failed.
//
// One reconcile handles all claims of one scalable resource, because the order of their creation
// decides which Machine serves which claim (package planner). It runs these steps. An error of a
// step does not stop the others, and a claim whose link could not be written is left out of them.
//
//  1. snapshot.Load reads the resource and computes the plan. newest adds the links that the cache
//     lacks. Nothing more happens if the Cluster or the resource is paused. For a suspended
//     resource, unless its Cluster is being deleted, only step 4 runs.
//  2. startLinks starts to write the planned links on the Machines, several at once, and does not wait
//     for them (writer.go). The API server writes a link only to a Machine that has none, so two
//     writers cannot give one Machine to two claims. After a crash, the written links stay and the
//     next reconcile writes the others.
//  3. resetProviderIDs gives claims that have lost their Machine before their Node has registered
//     their provisional ID. After a crash, the next reconcile does. The controller providerid gives
//     claims the IDs of their Machines.
//  4. deleteLost deletes registered claims whose Machine is being deleted, or whose Node or instance
//     no longer exists. After a crash, the next reconcile deletes them.
//  5. deleteWithCluster deletes claims without a Machine while the Cluster is being deleted. A
//     crash has the same effect.
//  6. reportStalls writes the condition MachineAvailable of claims whose launch is stalled, or is
//     so no longer. A crash can only cost the event, which follows the condition.
//  7. handleFailures marks the offering as unavailable, then reports the failure, then deletes the
//     claim or relaunches it with another offering. After a crash between two of these writes, the
//     claim still counts as failed, and the next reconcile continues.
//
// All of this follows from what the API server has. A process keeps only the links that it is writing,
// and the Machines that it has linked, until its cache has them (recent.go). A new leader reads all linked Machines once.
package nodeclaim
