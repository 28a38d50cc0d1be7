// SPDX-License-Identifier: Apache-2.0

package history

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// observeMachine checks the change of a Machine.
func (c *Checker) observeMachine(change Change, before *Object) {
	after := change.Object
	if before == nil && after != nil {
		c.countCreated(change.Key, after)
	}
	if before != nil && after != nil && before.Claim != "" && before.Claim != after.Claim {
		c.checkTaken(change, before, after)
	}
	if after != nil && after.Claim != "" {
		c.checkLinked(change, before, after)
		c.learn(after)
	}
	surplus := c.takeExtra(change, before)
	if before.Live() && !after.Live() {
		c.checkDeleted(change, before, surplus)
	}
}

// countCreated counts a new Machine.
func (c *Checker) countCreated(key string, machine *Object) {
	c.machines++
	if set := setOf(key, machine); c.exceedsReplicas(key, machine) {
		c.surplus++
		c.extra[set] = append(c.extra[set], machine.Name)
	} else {
		delete(c.extra, set) // the MachineSet has seen replicas that count them
	}
}

// hasOwnMark reports whether a Machine was marked for deletion while it served a claim. The replicas that are lowered then
// are its own. With any other mark they are as before: a MachineSet whose cache lacks the mark of its surplus Machine deletes
// another one in its place.
func hasOwnMark(machine *Object) bool { return machine.Chosen && machine.Claim != "" }

// isMark reports whether a Machine exists and is not being deleted. If it is now leaving, it was only marked for deletion.
func isMark(change Change) bool {
	return change.Kind == Machine && change.Object != nil && change.Object.Deleted.IsZero()
}

// setOf returns the key of the MachineSet of a Machine; empty if it has none.
func setOf(key string, machine *Object) string {
	if machine.Set == "" {
		return ""
	}
	return strings.TrimSuffix(key, machine.Name) + machine.Set
}

// takeExtra returns the name of a surplus Machine in whose place a MachineSet can have deleted another one now, and forgets it;
// empty if the change is no deletion, or there is no such Machine.
func (c *Checker) takeExtra(change Change, before *Object) string {
	if before == nil || !before.Deleted.IsZero() || isMark(change) || hasOwnMark(before) {
		return ""
	}
	set := setOf(change.Key, before)
	extra := c.extra[set]
	if len(extra) == 0 {
		return ""
	}
	c.extra[set] = extra[1:]
	return extra[0]
}

// exceedsReplicas reports whether the MachineSet of a new Machine has more Machines than replicas.
func (c *Checker) exceedsReplicas(key string, machine *Object) bool {
	name := setOf(key, machine)
	set := c.objects[MachineSet][name]
	if set == nil {
		return false
	}
	return len(c.machinesOf(name)) > int(set.Replicas)
}

// observeInstance checks that an instance is deleted only after its Machine: a MachinePool's provider could remove any
// of them.
func (c *Checker) observeInstance(change Change, before *Object) {
	if machine := c.objects[Machine][change.Key]; before.Live() && !change.Object.Live() && machine.Live() {
		c.checkDeleted(change, machine, "")
	}
}

// learn records which claims the Machine has served and which provider ID its claim can have.
func (c *Checker) learn(machine *Object) {
	if !slices.Contains(c.served[machine.UID], machine.Claim) {
		c.served[machine.UID] = append(c.served[machine.UID], machine.Claim)
	}
	if machine.ProviderID != "" && !slices.Contains(c.known[machine.Claim], machine.ProviderID) {
		c.known[machine.Claim] = append(c.known[machine.Claim], machine.ProviderID)
	}
}

// checkLinked checks a new link: no other claim that this Machine was ever linked to may still need it.
func (c *Checker) checkLinked(change Change, before, after *Object) {
	if before != nil && before.Claim == after.Claim {
		return
	}
	if claim := c.claims[after.Claim]; claim.Live() && !after.Live() {
		c.violated(change, WrongDelete, after.Name, "Machine %s, which was already leaving, was linked to NodeClaim %s", change.Key, claim.Name)
	}
	for _, earlier := range c.served[after.UID] {
		if claim := c.claims[earlier]; earlier != after.Claim && claim.Live() && c.servedByAnother(earlier, after) == nil {
			c.violated(change, DoubleLink, after.Name, "Machine %s was linked to NodeClaim %s while NodeClaim %s, to which it was linked before, was alive and had no other Machine",
				change.Key, c.claimName(after.Claim, after.ClaimName), claim.Name)
		}
	}
}

// checkTaken checks a link that was removed, or replaced by another: its claim must not need the Machine.
func (c *Checker) checkTaken(change Change, before, after *Object) {
	claim := c.claims[before.Claim]
	if after.Claim != "" || !claim.Live() || !after.Live() {
		return // A replaced link is checked as a new link.
	}
	if c.servedByAnother(before.Claim, after) == nil && !c.failed(change.Key, after, change.Seen) {
		c.violated(change, LostLink, after.Name, "the link of Machine %s to NodeClaim %s was removed while the claim was alive and had no other Machine", change.Key, claim.Name)
	}
}

// checkDeleted checks that a Machine that is now leaving (it or its instance is being deleted, or it is marked for
// deletion) does not serve a live claim. A second Machine of a claim is allowed to leave unless the claim has its
// provider ID; so is one that has failed. If a surplus Machine is given, a MachineSet can have deleted this one in its
// place, which it does only before a Machine has a Node.
func (c *Checker) checkDeleted(change Change, machine *Object, surplus string) {
	for _, claim := range c.sortedClaims() {
		own := machine.ProviderID != "" && machine.ProviderID == claim.ProviderID
		if !claim.Live() || (machine.Claim != claim.UID && !own) || c.failed(change.Key, machine, change.Seen) {
			continue
		}
		if second := c.servedByAnother(claim.UID, machine); second != nil && !own {
			continue
		}
		what, how := "", "deleted"
		switch {
		case change.Kind != Machine:
			what = "the instance of "
		case isMark(change):
			how = "marked for deletion"
		}
		found := violation(change, WrongDelete, machine.Name, "%sMachine %s (%s) was %s while it served NodeClaim %s (%s), which was alive",
			what, change.Key, state(machine), how, claim.Name, state(claim))
		if surplus == "" || isMark(change) || machine.Node != "" {
			c.violations = append(c.violations, found)
			continue
		}
		found.Text += ", in the place of Machine " + surplus + ", which is surplus"
		c.losses = append(c.losses, found)
		surplus = ""
	}
}

// claimName returns the name of a claim, which may no longer exist.
func (c *Checker) claimName(uid types.UID, name string) string {
	switch claim := c.claims[uid]; {
	case claim != nil:
		return claim.Name
	case name != "":
		return name
	default:
		return string(uid)
	}
}
