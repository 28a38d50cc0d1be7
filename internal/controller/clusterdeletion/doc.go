// SPDX-License-Identifier: Apache-2.0

// Package clusterdeletion removes the hooks of this operator from all Machines of the served Cluster
// as soon as the Cluster is being deleted or no longer exists.
//
// Cluster API waits for pre-terminate hooks also while it deletes the whole Cluster (Cluster API:
// core/reconcilers/machine/machine_controller.go, reconcileDelete). If the operator runs in the
// workload cluster, Cluster API also deletes the Machine on which the operator runs, and then nothing
// would remove the hooks of the other Machines. Therefore the operator does not wait until a Machine is
// being deleted. It removes the hooks of the Machine of its own Node last: if that Machine has a
// pre-terminate hook, the operator runs until all others have none.
//
// The other controllers mark no Machine that is deleted with its Cluster, because the mark adds a hook. A
// Machine that they have marked just before loses the hook again: its event triggers the next
// reconcile.
//
// One reconcile handles all Machines of the Cluster, whatever scalable resource they belong to, and
// whether that is paused. A crash between two writes delays the rest only: the next start lists all
// Machines again. Nothing is written while the Cluster is paused, because Cluster API deletes
// nothing then, and clusterctl move deletes a paused Cluster.
package clusterdeletion
