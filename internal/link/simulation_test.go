// SPDX-License-Identifier: Apache-2.0

package link

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-capi/karpenter-capi/test/counts"
	"github.com/karpenter-capi/karpenter-capi/test/model"
)

// interleavings is the number of seeds that TestSimulation runs.
const interleavings = 20000

// simulate runs one interleaving, then lets everything settle.
func simulate(seed int64, opts options) *world {
	w := newWorld(seed, opts)
	w.chaos()
	if w.failure == "" {
		w.settle()
	}
	return w
}

// traceOf runs an interleaving again and returns what happened up to a step.
func traceOf(seed int64, opts options, last int) string {
	opts.trace = true
	var lines []string
	for _, line := range simulate(seed, opts).log {
		var step int
		if _, err := fmt.Sscan(line, &step); err == nil && step <= last {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// TestSimulation runs random interleavings in which no serving Machine may be
// deleted, neither by us nor by the MachineSet.
func TestSimulation(t *testing.T) {
	steps := 0
	for seed := range int64(interleavings) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			w := simulate(seed, options{})
			steps += w.step
			if w.failure != "" {
				t.Errorf("%s\n%s", w.failure, traceOf(seed, options{}, w.step))
			} else if len(w.victims) > 0 {
				t.Errorf("replicas made the MachineSet delete a serving Machine\n%s", traceOf(seed, options{}, w.victims[0]))
			}
		})
	}
	counts.Print(t, fmt.Sprintf("simulation of links: %d interleavings, %d steps", interleavings, steps))
}

// TestSimulationPool does the same with pools of a strict provider and of one like
// Azure.
func TestSimulationPool(t *testing.T) {
	steps := 0
	for seed := range int64(interleavings) {
		opts := options{pool: &model.PoolProvider{RemovesAnnotated: seed%2 == 1}}
		w := simulate(seed, opts)
		steps += w.step
		if w.failure != "" {
			t.Fatalf("seed %d: %s\n%s", seed, w.failure, traceOf(seed, opts, w.step))
		} else if len(w.victims) > 0 {
			t.Fatalf("seed %d: replicas made the provider remove a serving Machine\n%s", seed, traceOf(seed, opts, w.victims[0]))
		}
	}
	counts.Print(t, fmt.Sprintf("simulation of links in pools: %d interleavings, %d steps", interleavings, steps))
}

// TestSimulationAdopted does the same with a resource that had Machines of its own:
// none of these is ever linked, chosen or deleted for replicas, and as many stay.
func TestSimulationAdopted(t *testing.T) {
	for seed := range int64(interleavings / 4) {
		opts := options{own: 1 + int(seed%3)}
		w := simulate(seed, opts)
		if w.failure != "" {
			t.Fatalf("seed %d: %s\n%s", seed, w.failure, traceOf(seed, opts, w.step))
		} else if len(w.victims) > 0 {
			t.Fatalf("seed %d: replicas made the MachineSet delete a Machine that serves or was there before\n%s", seed, traceOf(seed, opts, w.victims[0]))
		}
	}
}

// TestSimulationBlocked does the same with a MachineSet whose preflight checks fail now and
// then. Replicas are lowered while they do, and it may be unblocked at any moment.
func TestSimulationBlocked(t *testing.T) {
	for seed := range int64(interleavings) {
		opts := options{blocks: true}
		w := simulate(seed, opts)
		if w.failure != "" {
			t.Fatalf("seed %d: %s\n%s", seed, w.failure, traceOf(seed, opts, w.step))
		} else if len(w.victims) > 0 {
			t.Fatalf("seed %d: replicas made the MachineSet delete a serving Machine\n%s", seed, traceOf(seed, opts, w.victims[0]))
		}
	}
}

// TestSimulationCounts counts the serving Machines that a MachineSet or a provider
// deletes when its world is less kind; what must hold at every moment and in the end, does.
func TestSimulationCounts(t *testing.T) {
	for name, opts := range map[string]options{
		"a lagging MachineSet":            {laggingMachineSet: true},
		"a lagging linker, and blocks":    {blocks: true, laggingLinker: true},
		"deleted Machines without a Node": {deletedBooting: true},
		"those of a pool":                 {deletedBooting: true, pool: &model.PoolProvider{}},
	} {
		t.Run(name, func(t *testing.T) {
			harmed := harm{}
			for seed := range int64(interleavings / 4) {
				w := simulate(seed, opts)
				harmed.add(seed, w.victims)
				if w.failure != "" {
					t.Errorf("seed %d: %s\n%s", seed, w.failure, traceOf(seed, opts, w.step))
				}
			}
			t.Logf("simulated %d interleavings with %s: %s", interleavings/4, name, harmed.report(opts))
		})
	}
}

// harm counts deleted serving Machines and remembers where it took fewest steps.
type harm struct {
	machines, runs int
	seed           int64
	step           int
}

func (h *harm) add(seed int64, steps []int) {
	if len(steps) == 0 {
		return
	}
	h.machines += len(steps)
	h.runs++
	if h.step == 0 || steps[0] < h.step {
		h.seed, h.step = seed, steps[0]
	}
}

func (h *harm) report(opts options) string {
	text := fmt.Sprintf("%d serving Machines were deleted, in %d runs", h.machines, h.runs)
	if h.runs == 0 {
		return text
	}
	return fmt.Sprintf("%s; the shortest, seed %d:\n%s", text, h.seed, traceOf(h.seed, opts, h.step))
}

// TestSimulationDefaultOrder runs actors in their default order on fresh caches.
func TestSimulationDefaultOrder(t *testing.T) {
	w := newWorld(0, options{trace: true})
	scale := func(name string, made int, change func()) {
		before := w.made
		w.actor = core
		change()
		w.settle()
		// Each claim that came has cost itself and one Machine, and nothing else was made.
		if got := w.made - before; got != made || w.failure != "" || len(w.victims) > 0 {
			t.Fatalf("%s: %d objects made, want %d; %d serving Machines deleted; %s\n%s", name, got, made, len(w.victims), w.failure, strings.Join(w.log, "\n"))
		}
	}
	create := func(n int) {
		for range n {
			w.createClaim()
		}
	}
	scale("out by 10", 20, func() { create(10) })
	scale("3 of 10 go while 2 arrive", 4, func() {
		for _, c := range w.claims.now()[2:5] {
			w.deleteClaim(c.uid)
		}
		create(2)
	})
	scale("a user deletes a Machine", 0, func() {
		w.updateMachine(w.machines.now()[4].Name, 0, func(m *simMachine) { m.deleting = true })
	})
	scale("in to nothing", 0, func() {
		for _, c := range w.claims.now() {
			w.deleteClaim(c.uid)
		}
	})
}

// TestSimulationBlockedInOrder removes Machines while a claim waits for one that preflight
// checks keep from being created. Whenever that ends, one Machine is created.
func TestSimulationBlockedInOrder(t *testing.T) {
	for name, rounds := range map[string]int{"at once": 0, "while replicas are lowered": 1, "while Machines leave": 3, "when all is settled": 100} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(0, options{trace: true, blocks: true})
			w.actor = core
			for range 3 {
				w.createClaim()
			}
			w.settle()
			w.blocked, w.actor = true, core
			w.createClaim()
			for range 20 {
				w.round()
			}
			made := w.made
			for _, c := range slices.Clone(w.claims.now()[:2]) {
				w.deleteClaim(c.uid)
			}
			for range rounds {
				w.round()
			}
			if replicas := w.md.now().replicas; rounds == 100 && (replicas != 2 || len(w.machines.now()) != 1) {
				t.Errorf("%d Machines with replicas %d, want 1 with 2", len(w.machines.now()), replicas)
			}
			w.settle()
			if got := w.made - made; got != 1 || w.failure != "" || len(w.victims) > 0 {
				t.Errorf("%d Machines made, want 1; %d serving Machines deleted; %s", got, len(w.victims), w.failure)
			}
			if t.Failed() {
				t.Log(strings.Join(w.log, "\n"))
			}
		})
	}
}

// TestSimulationDoubleLink is a linker that does not see its own last link and
// gives a claim a second Machine, while the claim that waited for it goes.
func TestSimulationDoubleLink(t *testing.T) {
	w := newWorld(0, options{trace: true})
	w.createClaim()
	w.createClaim()
	first, second := w.claims.now()[0].uid, w.claims.now()[1].uid
	for _, uid := range []types.UID{first, second} {
		w.updateClaim(uid, 0, func(c *simClaim) { c.launched, c.providerID = true, ProvisionalID(uid) })
	}
	w.md = append(w.md, simReplicas{replicas: 2})
	w.ms = append(w.ms, simReplicas{replicas: 2, from: 1})
	for _, name := range []string{"m2", "m1"} {
		w.machines = append(w.machines, append(slices.Clone(w.machines.now()), simMachine{Machine: Machine{Name: name, Created: start}, version: w.wrote()}))
	}
	w.refresh(linker)
	for _, seen := range []int{1, 2} {
		w.views[linker].machines = seen
		w.act(linker)
	}
	w.deleteClaim(second)
	w.settle()
	if w.failure != "" {
		t.Errorf("%s\n%s", w.failure, strings.Join(w.log, "\n"))
	}
}
