// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"strings"
	"testing"
)

// TestSimulationInOrder lets all act in turn on caches that are up to date. A claim costs one
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
			t.Fatalf("%s: %d objects made, want %d; %d serving Machines deleted; %s\n%s", name, got, made, w.victims, w.failure, strings.Join(w.log, "\n"))
		}
	}
	scale("10 claims come", 20, func() { w.createClaims(10) })
	scale("3 of 10 go while 2 arrive", 4, func() { w.deleteClaims(3); w.createClaims(2) })
	scale("a user deletes a Machine", 0, func() { w.now.machines[4].deleting = true })
	scale("all go", 0, func() { w.deleteClaims(9) })
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

// TestSimulationBlockedInOrder removes Machines while a claim waits for one that preflight
// checks keep from being created. Whenever that ends, one Machine is created.
func TestSimulationBlockedInOrder(t *testing.T) {
	for name, rounds := range map[string]int{"at once": 0, "while replicas are lowered": 1, "while Machines leave": 3, "when all is settled": 100} {
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
				t.Errorf("%d Machines made, want 1; %d serving Machines deleted; %s", got, w.victims, w.failure)
			}
			if t.Failed() {
				t.Log(strings.Join(w.log, "\n"))
			}
		})
	}
}
