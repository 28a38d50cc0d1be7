// SPDX-License-Identifier: Apache-2.0

// Package lifecycle is the life of a Machine: the labels, annotations and hooks with which the
// operator controls it. Every read and write of these is here, and nowhere else.
//
//	             Link                       Mark                    replicas are lowered
//	 spare ───────────────► linked ───────────────► marked for ───────────────► deletable
//	   ▲                      │                     deletion                        │
//	   │        Unlink        │                        ▲                     Delete │
//	   └──────────────────────┘                        │                            ▼
//	   └───────────────────────────────────────────────┘                         deleted
//	                    Mark, after spareTTLSeconds
//
//	spare     It has no link. The MachineSet or the infrastructure provider created it for the
//	          replicas that the controller scalableresource has set.
//	linked    It serves a NodeClaim. The controller link writes the label node-claim-uid and
//	          the annotations node-claim and the pre-drain hook. CloudProvider.Delete unlinks it
//	          if it has no Node and can serve another claim. The controller scalableresource
//	          unlinks it if its claim no longer exists or has another Machine.
//	marked    CloudProvider.Delete marks it after Karpenter has drained its Node. The controller
//	          scalableresource marks spare Machines after spareTTLSeconds, Machines that another
//	          controller or a user deletes and that serve no claim, and Machines that have lost
//	          their instance. Marked Machines are never linked, and replicas do not count them.
//	          The mark removes the pre-drain hook of a Machine that is not being deleted.
//	deletable The MachineSets, or the infrastructure provider, have acted on replicas that do not
//	          count the Machine, so that it is not replaced (see package planner).
//	deleted   The MachineSet or the controller scalableresource deletes it, and the latter removes
//	          the hooks that are left.
//
// A Machine with a Node that a user or a health check deletes waits with the pre-drain hook until
// Karpenter has drained the Node. Then it is marked, and continues as above. A Machine of a
// MachinePool also has a pre-terminate hook from its link on: its instance must exist until
// replicas no longer count it, because the infrastructure provider replaces an instance that
// disappears earlier.
//
// When the Cluster is being deleted, package clusterdeletion removes the hooks of all Machines, in any
// state. Machines that are being deleted then are not marked.
//
// Each write is one request. Its precondition is exactly what the decision depends on: that it is the
// same Machine, and that it is linked, marked and being deleted as it was when it was read, or not.
// The API server checks this in the same request (patch.go), and other writes to the Machine cause
// no conflict. A Machine of a MachineDeployment usually gets two writes in its life: its link, and its
// mark. Its MachineSet deletes it. A crash between two writes leaves a Machine in one of the states
// above, and the next reconcile continues from there:
//
//   - linked, and the claim lacks the provider ID: the claim gets it.
//   - unlinked, and the claim still exists: the claim is being deleted, and ends.
//   - marked, and replicas still count it: they are lowered.
//   - marked, and replicas do not count it: it is deleted.
//   - deleted, and hooks are left: they are removed.
package lifecycle
