// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-capi/karpenter-capi/test/counts"
	"github.com/karpenter-capi/karpenter-capi/test/rotation"
)

const (
	// seeds is how often each scenario is run with stale caches, and how often with
	// withheld events.
	seeds = 60
	// parts is in how many runs of the tests all is searched: each does another part of
	// the faults at one write and of the seeds (test/rotation). Consecutive writes, and
	// the faults of one write, are in different parts: so in each, every scenario has some
	// of each fault, and of each mode. No scenario has fewer writes than that.
	parts = 8
	// traced is how many lines of a trace a failure prints.
	traced = 200
)

func TestCrashSearch(t *testing.T) {
	rotation.Tell(t)
	for _, of := range scalings {
		t.Run(of.name, func(t *testing.T) {
			t.Cleanup(func() { of.tell(t) })
			for _, s := range scenarios {
				if slices.Contains(s.of, of) {
					of.scenarios.Add(1)
					t.Run(s.name, func(t *testing.T) { s.search(t, of) })
				}
			}
		})
	}
}

// tell tells what was searched.
func (of *scaling) tell(t *testing.T) {
	counts.Print(t, fmt.Sprintf("crash search, %s: %d scenarios, %d runs with a fault at one write, %d with stale caches or withheld events, in %d of which a Machine was lost in a known way; this is %s",
		of.name, of.scenarios.Load(), of.faulty.Load(), of.seeded.Load(), of.lost.Load(), rotation.Part(t, parts)))
}

// search runs a scenario without any disturbance, and then with each.
func (s scenario) search(t *testing.T, of *scaling) {
	begin := s.begin(t, of)
	clean := s.run(begin, plan{}, &mode{})
	clean.mustHold(t)
	made, left := clean.made("Machine")-begin.made("Machine"), len(clean.machines())
	if made != s.machines || left != s.left {
		t.Fatalf("a clean run makes %d Machines and leaves %d; want %d and %d\n%s", made, left, s.machines, s.left, clean.lastOf(traced))
	}
	want, points := clean.outcome(), faultPoints(clean.writes)
	for f, fault := range faults {
		for i, point := range points {
			if !rotation.Takes(t, parts, f+i) {
				continue
			}
			t.Run(fmt.Sprintf("%s=%d", fault.name, i), func(t *testing.T) {
				t.Parallel()
				of.faulty.Add(1)
				w := s.run(begin, plan{fault: fault, write: point.key}, &mode{})
				if !w.hit {
					t.Errorf("there was no write %s", point.key)
				}
				w.mustEndAs(t, want, 0)
			})
		}
	}
	var lost atomic.Int32
	seeded := func(m *mode) func(*testing.T) {
		return func(t *testing.T) {
			t.Parallel()
			of.seeded.Add(1)
			w := s.run(begin, plan{}, m)
			w.mustEndAs(t, want, of.extra(s))
			if w.lost > 0 {
				lost.Add(1)
			}
		}
	}
	for seed := range int64(seeds) {
		if !rotation.Takes(t, parts, int(seed)) {
			continue
		}
		t.Run(fmt.Sprintf("stale=%d", seed), seeded(&mode{random: rand.New(rand.NewSource(seed)), seed: seed, stale: true}))
		t.Run(fmt.Sprintf("withheld=%d", seed), seeded(&mode{random: rand.New(rand.NewSource(seed)), seed: seed, withheld: true}))
	}
	t.Cleanup(func() {
		of.lost.Add(lost.Load())
		if s.mayLose != nil && lost.Load() > s.mayLose.atMost {
			t.Errorf("in %d runs a Machine of a live claim was lost, more than %d", lost.Load(), s.mayLose.atMost)
		}
	})
}

// begin returns the world as a scenario finds it.
func (s scenario) begin(t *testing.T, of *scaling) *world {
	w := newScene(of)
	w.wanted = s.before
	w.run()
	w.mustHold(t)
	return w
}

// run runs the scenario from its beginning.
func (s scenario) run(begin *world, p plan, m *mode) *world {
	w := begin.clone()
	w.plan, w.script, w.known, w.mayLose, w.mode = p, s.script, s.known, s.mayLose, m
	w.run()
	return w
}

func (w *world) mustHold(t *testing.T) {
	t.Helper()
	if w.failure != "" {
		t.Fatalf("%s\n%s", w.failure, w.lastOf(traced))
	}
}

// mustEndAs fails a test if a run is not as good as a clean one. It may have made
// some Machines more.
func (w *world) mustEndAs(t *testing.T, want outcome, extra int) {
	t.Helper()
	w.mustHold(t)
	got := w.outcome()
	// One less is made if a claim was seen to go before it was given its Machine.
	for _, kind := range []string{"Machine", instanceKind} {
		if more := got.made[kind] - want.made[kind]; extra > 0 && more >= -1 && more <= extra {
			got.made[kind] = want.made[kind]
		}
	}
	// Karpenter makes another claim for the Pods of a Node that was lost.
	got.made["NodeClaim"] -= w.lostNodes
	if diff := cmp.Diff(want.state, got.state); diff != "" {
		t.Errorf("it does not end as a clean run (-want +got):\n%s", diff)
	}
	if !maps.Equal(want.made, got.made) {
		t.Errorf("it makes %v, a clean run %v", got.made, want.made)
	}
	if t.Failed() {
		t.Logf("what happened:\n%s", w.lastOf(traced))
	}
}
