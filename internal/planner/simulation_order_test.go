// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"strings"
	"testing"
)

// TestSimulationInOrder lets all actors act in turn on up-to-date caches. Each claim costs one
// Machine, and nothing else is created.
func TestSimulationInOrder(t *testing.T) {
	w := newWorld(0, options{})
	w.trace = true
	scale := func(name string, made int, change func()) {
		before := w.made
		change()
		w.wrote()
		w.settle()
		if got := w.made - before; got != made || w.failure != "" || w.victims > 0 {
			t.Fatalf("%s: %d objects created, want %d; %d serving Machines deleted; %s\n%s", name, got, made, w.victims, w.failure, strings.Join(w.log, "\n"))
		}
	}
	scale("10 claims come", 20, func() { w.createClaims(10) })
	scale("3 of 10 are deleted while 2 come", 4, func() { w.deleteClaims(3); w.createClaims(2) })
	scale("a user deletes a Machine", 0, func() { w.now.machines[4].deleting = true })
	scale("all are deleted", 0, func() { w.deleteClaims(9) })
}

func (w *simulation) createClaims(count int) {
	for range count {
		w.createClaim()
	}
}

func (w *simulation) deleteClaims(count int) {
	for i := range min(count, len(w.now.claims)) {
		w.now.claims[i].Leaving = true
	}
}

// TestSimulationBlockedInOrder removes Machines while a claim waits for one that failing preflight
// checks prevent. Whenever the checks succeed again, one Machine is created.
func TestSimulationBlockedInOrder(t *testing.T) {
	for name, rounds := range map[string]int{"at once": 0, "while replicas are lowered": 1, "while Machines leave": 3, "when nothing is left to do": 100} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(0, options{blocks: true})
			w.trace = true
			w.createClaims(3)
			w.settle()
			w.blocked = true
			w.createClaim()
			for range 20 {
				w.round()
			}
			made := w.made
			w.deleteClaims(2)
			for range rounds {
				w.round()
			}
			if rounds == 100 && (w.now.md.replicas != 2 || len(w.now.machines) != 1) {
				t.Errorf("%d Machines with replicas %d, want 1 with 2", len(w.now.machines), w.now.md.replicas)
			}
			w.settle()
			if got := w.made - made; got != 1 || w.failure != "" || w.victims > 0 {
				t.Errorf("%d Machines created, want 1; %d serving Machines deleted; %s", got, w.victims, w.failure)
			}
			if t.Failed() {
				t.Log(strings.Join(w.log, "\n"))
			}
		})
	}
}
