// SPDX-License-Identifier: Apache-2.0

// Package scalableresource reconciles a scalable resource with its NodeClaims and Machines: it creates and adopts
// resources, links Machines to claims, ends claims whose machine cannot be launched or is lost, sets replicas, removes
// Machines that serve no claim, and deletes generated resources that have been empty for emptyTTLSeconds.
//
// One reconcile handles one resource, because the order in which its claims were created decides which Machine serves
// which claim (package planner). It reads once, decides once, and then runs these steps. An error of one of the steps
// does not stop the others, unless it says so.
//
//  1. adopt adopts an existing MachineDeployment when the first claim names it. That is one write,
//     whose event triggers the next reconcile.
//  2. snapshot.Read reads the resource, with the links that are being written, and planner.Decide decides. logReasons logs
//     what the plan puts off, and why. Nothing more happens if the Cluster or the resource is paused. For a
//     suspended resource, unless its Cluster is being deleted, only deleteLost and deleteSuspended run. The second
//     removes the hooks of Machines that are being deleted and whose Nodes need no drain.
//  3. startLinks asks package link for the planned links, and does not wait for them. It asks for none while the cache
//     lacks lower replicas that were written (lowered.go). Steps 4 to 8 leave out the claims of these links, and do not
//     run while a cluster cannot be reached.
//  4. resetProviderIDs gives claims that have lost their Machine before their Node has registered their
//     provisional ID. The controller providerid gives claims the IDs of their Machines.
//  5. deleteLost deletes registered claims whose Machine is being deleted, or whose Node or instance no longer exists.
//  6. deleteWithCluster deletes claims without a Machine while the Cluster is being deleted.
//  7. reportStalls writes the condition MachineAvailable of claims whose launch is stalled, or is so no longer. A
//     crash can only cost the event, which follows the condition. reportWaits writes the condition MachineReady of claims
//     whose Machine or Node takes minutes, or does so no longer.
//  8. handleFailures marks the offering as unavailable, then reports the failure, then deletes the claim. After a crash between two of these writes, the claim still counts as failed.
//  9. fixTimes corrects times in annotations that are invalid or in the future. If there are any, the reconcile ends
//     here.
//  10. markAndUnlink marks Machines for deletion and unlinks Machines. Before that, it reads the claim of the link from
//     the API server. A crash leaves Machines in states of package lifecycle.
//  11. deleteMarked deletes the Machines that are deletable, and removes their hooks. It marks Machines that others
//     delete if Karpenter will not drain their Nodes. It leaves Machines that are deleted with their Cluster to
//     package clusterdeletion.
//  12. scale chooses among these. ensureResource creates a resource that does not exist, after the objects that it
//     refers to. endAdoption ends the adoption of a resource that its template no longer offers and that serves no
//     claim. moveWaiting gives the waiting claims of a resource that creates no Machines the resource that their
//     offering has now. setInPlace sets labels, annotations and timeouts of the template. update sets the replicas of
//     the plan, with the resourceVersion as precondition, or deletes an empty resource. scaleMachineSets passes the
//     replicas on to the MachineSets.
//
// After a crash in any of these, the next reconcile continues, because all of it follows from what the API server has.
// A process keeps only the links that it is writing and the Machines that it has linked (package link), the resources
// whose replicas it has lowered until the cache has that, the pace at which it raises replicas, the times of stalls and of reports, when
// a Machine of any resource last progressed, and the reasons that it has logged. After a restart, replicas may be raised
// sooner, a claim may get one report more, and a marked Machine may be deleted less than three minutes after a stall. A new leader reads all linked
// Machines once, and each resource once that gets a link.
package scalableresource
