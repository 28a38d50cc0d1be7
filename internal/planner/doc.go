// SPDX-License-Identifier: Apache-2.0

// Package planner decides which Machine serves which NodeClaim, how many replicas a scalable
// resource has, which of its Machines are removed, which NodeClaims have failed or are stalled, and when time alone changes
// that. It consists of pure functions over plain values, without a client, clock or cache. Package snapshot reads the values,
// and the controller scalableresource writes what is decided.
//
// All values are of one scalable resource, whose Machines are all alike. State is what was read, and Plan is what is decided:
//
//	Links, Unlinks, Marks, Spares, Lost  which Machine serves which claim, and which are removed (planner.go)
//	Replicas, Deletable                  how replicas become Machines (scaling.go)
//	Outcomes                             failures and stalls of claims (outcome.go)
//	Due                                  when to look again (due.go)
//	Reasons, Because                     why something is put off, and why a Machine is removed (reason.go)
//
// No claim fails while its launch is stalled, also if that is not reported yet. While the Cluster is being deleted, no claim
// needs a Machine or fails, and replicas are never raised. Of a suspended resource, replicas stay as they are, and nothing else is planned.
//
//	live     Machines that are neither being deleted nor marked for deletion
//	leaving  Machines that are being deleted or marked for deletion
//	waiting  claims that need a Machine and have none
//	spare    live Machines without a link
//	new      max(0, waiting − spare)
//
//	replicas = live + new + (leaving if new > 0, else 0)
//
// A MachineSet compares its replicas with all its Machines, leaving ones included (Cluster API:
// core/reconcilers/machineset/machineset_controller.go, syncReplicas). Any value from live to
// live + leaving makes it do nothing. A higher value makes it create Machines. So leaving Machines
// count only while something new is needed. Without this term, a slow termination would block
// every new Node. With this term at all times, the MachineSet would replace every Machine that is
// deleted.
//
// Lowering has one more rule. While replicas exceed the number of existing Machines, the MachineSet
// may have created the missing ones already. With lower replicas, it could delete a booting Machine
// that serves a claim, because all Machines without a Node have the same delete priority. So
// replicas stay until all requested Machines have appeared. Those that no claim needs are removed
// as spare Machines. The rule also holds when no claim is left: the next claim could be linked to
// such a Machine while the lower number is on its way.
//
// There is one exception. A MachineSet that preflight checks or a missing template block has
// certainly created none of the Machines that it lacks. Then replicas are lowered to live + new:
// leaving Machines delay nothing while none can be created. The MachineSet can be unblocked while
// the lower number is on its way. Then it creates Machines and deletes them again. So no Machine is
// linked until it has acted on the lower number, and a number that leaves it a choice among
// Machines without a Node is only written while there is no such Machine. With the lower number it
// may lack no Machine, and then it does not report that it is blocked. So 15 seconds after the
// lowering, if the MachineSet has acted on it, replicas count leaving Machines again.
//
// A Machine is removed in steps. It is marked for deletion, and from then on counts as leaving.
// Replicas follow. When the MachineSet has the lower number, the Machine is deletable. So the
// MachineSet does not replace it, however fast it disappears, and deletes no other. A Machine with a
// Node that a user or another controller deletes is blocked by its pre-drain hook, and removed in
// the same way. One without a Node may disappear at any moment. If a lower number is on its way at
// that moment, the MachineSet creates another Machine and then deletes one too many, which can be a
// booting Machine of a live claim. That claim gets another one.
//
// A MachineDeployment or MachineSet that a user deletes creates nothing, and only deletes what it owns. So its
// marked Machines are deletable at once, and replicas do not count them.
//
// A spare Machine stays for spareTTLSeconds, for the next claim. A Machine with a link is not spare: if
// its claim no longer exists, the link is removed first.
//
// A MachinePool has another equation. Its infrastructure provider does not count Machines whose
// hooks were removed, replaces those that disappear too early, and does not show what it has seen:
//
//	held    leaving Machines whose instance is kept by a hook
//	kept    those of the held ones that are not marked, or were marked within the settle time
//	unheld  Machines that others delete and that have no hook
//
//	replicas = live + unheld + new + (held if new > 0, else kept)
//
// docs/design/machinepools.md has its rules for lowering and deletion.
//
// Nothing is ever incremented. The same claims and Machines give the same plan, so after a crash
// between any two writes the next reconcile computes what remains to be done:
//
//   - after replicas were raised, before a link: the Machines appear and are linked.
//   - between two links: written links stay, and the others are written.
//   - after a Machine was unlinked, before its claim ends: the claim has no Machine, and ends.
//   - after a Machine was marked: replicas are lowered, and the MachineSet deletes the marked one.
//   - after replicas were lowered: the marked Machine is deleted.
package planner
