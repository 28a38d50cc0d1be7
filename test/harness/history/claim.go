// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-capi/karpenter-capi/internal/planner"
)

// observeClaim checks the change of a NodeClaim.
func (c *Checker) observeClaim(change Change, before *Object) {
	after := change.Object
	if after == nil {
		if before != nil {
			delete(c.claims, before.UID)
			c.checkGone(change, before)
		}
		return
	}
	if before == nil {
		c.launched++
	}
	c.claims[after.UID] = after
	if before == nil || before.ProviderID != after.ProviderID {
		c.checkProviderID(change, after)
	}
}

// checkProviderID checks a new provider ID of a claim.
func (c *Checker) checkProviderID(change Change, claim *Object) {
	id := claim.ProviderID
	if id == "" {
		return
	}
	if id != planner.ProvisionalID(claim.UID) && !slices.Contains(c.known[claim.UID], id) {
		c.violated(change, ProviderID, "", "NodeClaim %s got the provider ID %s, which is neither its provisional one nor that of a Machine that was linked to it (allowed: %s)",
			claim.Name, id, cmp.Or(strings.Join(c.known[claim.UID], ", "), "none"))
	}
	for _, other := range c.sortedClaims() {
		if other.UID != claim.UID && other.ProviderID == id {
			c.violated(change, DoubleLink, "", "NodeClaim %s got the provider ID %s, which NodeClaim %s has", claim.Name, id, other.Name)
		}
	}
}

// checkGone checks that nothing is left of a claim that was removed.
func (c *Checker) checkGone(change Change, claim *Object) {
	for _, machine := range c.linked(claim.UID) {
		c.violated(change, Finalizer, machine.Name, "NodeClaim %s was removed while Machine %s was linked to it (%s)", claim.Name, machine.Name, state(machine))
	}
}

func (c *Checker) sortedClaims() []*Object {
	return slices.SortedFunc(maps.Values(c.claims), func(a, b *Object) int { return cmp.Compare(a.Name, b.Name) })
}

// state describes the state of an object.
func state(object *Object) string {
	words := []string{"provider ID " + cmp.Or(object.ProviderID, "none"), "Node " + cmp.Or(object.Node, "none")}
	if object.Failed != "" {
		words = append(words, "infrastructure "+object.Failed)
	}
	if len(object.True) > 0 {
		words = append(words, "conditions "+strings.Join(object.True, " "))
	}
	if !object.Deleted.IsZero() {
		words = append(words, "being deleted")
	}
	return strings.Join(words, ", ")
}

// End returns what must not exist when everything has settled: Machines without a live claim, claims with two Machines,
// and instances without a Machine.
func (c *Checker) End() []Violation {
	var found []Violation
	add := func(rule Rule, machine, text string) {
		found = append(found, Violation{Rule: rule, Machine: machine, Text: text})
	}
	linked := map[types.UID][]string{}
	for _, key := range slices.Sorted(maps.Keys(c.objects[Machine])) {
		machine := c.objects[Machine][key]
		switch claim := c.claims[machine.Claim]; {
		case claim == nil && machine.Claim == "":
			add(Leak, machine.Name, "at the end Machine "+key+" serves no NodeClaim ("+state(machine)+")")
		case !claim.Live():
			add(Leak, machine.Name, "at the end Machine "+key+" is linked to NodeClaim "+machine.ClaimName+", which is not alive ("+state(machine)+")")
		case machine.Live():
			linked[claim.UID] = append(linked[claim.UID], key)
		}
	}
	for _, claim := range c.sortedClaims() {
		if machines := linked[claim.UID]; len(machines) > 1 {
			add(DoubleLink, "", "at the end NodeClaim "+claim.Name+" has several Machines: "+strings.Join(machines, ", "))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.objects[SimulatedMachine])) {
		if c.objects[Machine][key] == nil {
			add(Leak, "", "at the end SimulatedMachine "+key+" has no Machine ("+state(c.objects[SimulatedMachine][key])+")")
		}
	}
	return found
}
