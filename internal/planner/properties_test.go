// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/karpenter-capi/karpenter-capi/test/harness/property"
)

// apply writes what a plan lists. The MachineSet does nothing.
func apply(state State, plan Plan) State {
	next := State{Replicas: plan.Replicas, Claims: state.Claims}
	linked := map[string]types.UID{}
	for _, link := range plan.Links {
		linked[link.Machine] = link.Claim.UID
	}
	for _, m := range state.Machines {
		if uid, ok := linked[m.Name]; ok {
			m.Claim = uid
		}
		m.Leaving = m.Leaving || slices.Contains(plan.Marks, m.Name)
		if slices.Contains(plan.Unlinks, m.Name) {
			m.Claim = ""
		}
		next.Machines = append(next.Machines, m)
	}
	return next
}

func TestProperties(t *testing.T) {
	property.Check(t, 20000, func(t *rapid.T) {
		state := randomState.Draw(t, "state")
		plan := decide(state)

		machines := map[string]Machine{}
		live := 0
		for _, m := range state.Machines {
			machines[m.Name] = m
			if !m.Leaving {
				live++
			}
		}

		usedBy := map[string]types.UID{}
		for _, uid := range slices.Sorted(maps.Keys(plan.Served)) {
			name := plan.Served[uid]
			if other, twice := usedBy[name]; twice {
				t.Fatalf("Machine %s serves both %s and %s", name, uid, other)
			}
			usedBy[name] = uid
			if machines[name].Leaving {
				t.Fatalf("claim %s is served by %s, which is leaving", uid, name)
			}
		}
		for _, name := range slices.Concat(plan.Marks, plan.Unlinks, plan.Spares) {
			if uid, serves := usedBy[name]; serves {
				t.Fatalf("Machine %s is marked, unlinked or spare, and serves %s", name, uid)
			}
		}
		for _, link := range plan.Links {
			if m := machines[link.Machine]; m.Claim != "" || m.unfit() && m.ProviderID != link.Claim.ProviderID {
				t.Fatalf("Machine %s, which has a link or has failed, is linked", link.Machine)
			}
		}
		for _, c := range state.Claims {
			if plan.Served[c.UID] == "" && c.NeedsMachine && len(plan.Marks) > 0 {
				for _, name := range plan.Marks {
					if m := machines[name]; !m.HasNode && !m.unfit() {
						t.Fatalf("Machine %s is marked while %s waits", name, c.Name)
					}
				}
			}
		}
		// Replicas are never so low that a MachineSet would delete a live Machine.
		if int(plan.Replicas) < live {
			t.Fatalf("replicas %d, live %d", plan.Replicas, live)
		}

		// After a few plans, nothing is left to do and replicas stay. One plan is not enough, because
		// Machines that it unlinks may then be linked or marked.
		next := apply(state, plan)
		for range 3 {
			next = apply(next, decide(next))
		}
		again := decide(next)
		if len(again.Links)+len(again.Marks)+len(again.Unlinks) != 0 {
			t.Fatalf("after four plans: %+v", again)
		}
		if third := decide(apply(next, again)); third.Replicas != again.Replicas {
			t.Fatalf("replicas change again, from %d to %d", again.Replicas, third.Replicas)
		}

		// The order in which a cache lists objects does not matter.
		shuffled := state
		shuffled.Claims = rapid.Permutation(state.Claims).Draw(t, "claims in another order")
		shuffled.Machines = rapid.Permutation(state.Machines).Draw(t, "Machines in another order")
		if diff := cmp.Diff(plan, decide(shuffled)); diff != "" {
			t.Fatalf("in another order (-first +second):\n%s", diff)
		}
	})
}
