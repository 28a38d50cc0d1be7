// SPDX-License-Identifier: Apache-2.0

// Package scalableresource creates and adopts scalable resources, sets their replicas, removes
// Machines that serve no NodeClaim, and deletes generated resources that have been empty for
// emptyTTLSeconds.
//
// One reconcile handles one scalable resource. It runs these steps, of which scale chooses among
// the last five. Errors of steps 4 and 5 do not stop the later steps.
//
//  1. adopt adopts an existing MachineDeployment when the first claim names it. That is one write,
//     whose event triggers the next reconcile.
//  2. snapshot.Load reads the resource and computes the plan, and logReasons logs what the plan
//     puts off, and why. Nothing more happens if the Cluster or the resource is paused. For a
//     suspended resource, unless its Cluster is being deleted, only deleteSuspended runs. It
//     removes the hooks of Machines that are being deleted and whose Nodes need no drain.
//  3. fixTimes corrects times in annotations that are invalid or in the future. If there are any,
//     the reconcile ends here. After a crash, the next reconcile corrects the others.
//  4. markAndUnlink marks Machines for deletion and unlinks Machines. Before that, it reads the
//     claim of the link from the API server. A crash leaves Machines in states of package
//     lifecycle, from which the next reconcile continues.
//  5. deleteMarked deletes the Machines that are deletable, and removes their hooks. It marks
//     Machines that others delete if Karpenter will not drain their Nodes. It leaves Machines that
//     are deleted with their Cluster to package clusterdeletion. A crash has the same effect as in
//     step 4.
//  6. ensureResource creates a resource that does not exist, after the objects that it refers to. After a
//     crash, the next reconcile uses these objects. If nothing uses them, they are deleted after 5
//     minutes.
//  7. endAdoption ends the adoption of a resource that its template no longer offers and that
//     serves no claim.
//  8. moveWaiting gives the waiting claims of a resource that creates no Machines the resource that
//     their offering has now, such as that of another version. setInPlace sets labels, annotations
//     and timeouts of the template. The event of that triggers the next reconcile.
//  9. update sets the replicas of the plan, with the resourceVersion as precondition, or deletes
//     an empty resource. Replicas are computed from what exists, so a crash loses nothing.
//  10. scaleMachineSets passes the replicas on to the MachineSets. After a crash the next reconcile
//     does that, or the MachineDeployment controller.
//
// All of this follows from what the API server has. A process keeps only the pace at which it
// raises replicas, the times of stalls, and the reasons that it has logged. After a restart,
// replicas may be raised sooner, and a marked Machine may be deleted less than three minutes after
// a stall.
package scalableresource
