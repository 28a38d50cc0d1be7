// SPDX-License-Identifier: Apache-2.0

// Package link decides which Machine serves which NodeClaim, how many replicas
// a scalable resource has, and which of its Machines go. It is made of pure
// functions over plain values; it knows no client, clock or cache.
//
// All values are of one scalable resource, whose Machines are all alike.
//
//	live     Machines without deletion timestamp that were not chosen to go
//	leaving  Machines with deletion timestamp, or chosen to go
//	waiting  claims that need a Machine and have none
//	spare    live Machines that serve no claim
//	new      max(0, waiting − spare)
//
//	replicas = live + new + (leaving if new > 0, else 0)
//
// A MachineSet compares its replicas with all its Machines, leaving ones
// included (Cluster API: core/reconcilers/machineset/machineset_controller.go,
// syncReplicas). Any value between live and live + leaving makes it do nothing,
// a value above makes it create. So leaving counts only while something new is
// needed: without it a slow termination would hold up every new node; with it
// at all times every Machine that went would be replaced.
//
// Lowering has one more rule. While replicas are above the number of Machines
// there are, the MachineSet may have made the missing ones a moment ago. Lowered
// then, it could delete a booting Machine that serves a claim, for all Machines
// without a Node have the same delete priority. So replicas stay until what was
// asked for has appeared, and it then goes as a spare. That holds also when no
// claim is left: the next one could be given such a Machine while the lower
// number is still on its way.
//
// There is one exception. A MachineSet whose preflight checks fail certainly created none
// of the Machines that it lacks, so replicas are lowered to live + new: leaving Machines
// delay nothing while none can be created. It can be unblocked while the lower number is on
// its way. Then it creates Machines and deletes them again, so that Machines are not linked
// until it has acted on the lower number, and a number that leaves it a choice among Machines
// without a Node is only written while there is none. With the lower number it may lack no
// Machine any more, and then it does not report that it is blocked: a while after it has
// acted on that number, replicas count leaving Machines again, to see.
//
// A Machine goes in steps: it is chosen, which is an annotation, and counts as
// leaving; replicas follow; and only when the MachineSet has the lower number is it
// deleted. So it is not replaced, however fast it vanishes, and the MachineSet picks
// no other. A Machine that somebody else deletes is held up by its pre-drain hook
// if it has a Node, and goes the same way. If it has none it may vanish at any
// moment: should that be while a lower number is on its way, the MachineSet makes
// another and then deletes one too many, which can be a booting Machine of a live
// claim; that claim gets another.
//
// A spare Machine is kept for a while, for the next claim. A Machine with a link is
// no spare: if its claim is gone, the link is removed first.
//
// A MachinePool has another equation, for its infrastructure provider does not count
// Machines that were let go, replaces those that go too early, and does not tell what
// it has seen:
//
//	held    leaving Machines whose instance is kept by a hook
//	kept    those of the held ones that were not chosen, or a moment ago
//	unheld  Machines that others delete, and nothing holds
//
//	replicas = live + unheld + new + (held if new > 0, else kept)
//
// Its rules for lowering and for letting go are in docs/design/machinepools.md.
//
// Nothing is ever incremented. The same claims and Machines give the same
// answer, so a crash between any two writes leaves behind only a state from
// which the next reconcile computes what was still to be done:
//
//   - between raising replicas and linking: the Machines appear and are linked.
//   - between two links: the rest is linked; what is linked stays.
//   - between releasing a Machine and its claim's end: the claim has none, and ends.
//   - between choosing a Machine and lowering replicas: they are lowered, and the
//     MachineSet deletes the chosen one.
//   - between lowering replicas and deleting it: a chosen Machine is deleted.
package planner
