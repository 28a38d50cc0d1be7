// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"fmt"
	"maps"
	"math/rand"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-capi/karpenter-capi/test/counts"
)

const (
	// seeds is how often each scenario is run with stale caches, and how often with
	// withheld events.
	seeds = 60
	// traced is how many lines of a trace a failure prints.
	traced = 200
)

func TestCrashSearch(t *testing.T) {
	var faulty, seeded atomic.Int32
	t.Cleanup(func() {
		counts.Print(t, fmt.Sprintf("crash search: %d scenarios, %d runs with a fault at one write, %d with stale caches or withheld events, in which %d booting Machines were lost",
			len(scenarios), faulty.Load(), seeded.Load(), lost.Load()))
		if lost.Load() > seeded.Load()/100 {
			t.Errorf("%d booting Machines of live claims were lost in %d runs, more than one in a hundred", lost.Load(), seeded.Load())
		}
	})
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			begin := s.begin(t)
			clean := s.run(begin, plan{}, &mode{})
			clean.mustHold(t)
			made, left := clean.made("Machine")-begin.made("Machine"), len(clean.machines())
			if made != s.machines || left != s.left {
				t.Fatalf("a clean run makes %d Machines and leaves %d; want %d and %d\n%s", made, left, s.machines, s.left, clean.lastOf(traced))
			}
			want, points := clean.outcome(), faultPoints(clean.writes)
			for _, fault := range faults {
				for i, point := range points {
					t.Run(fmt.Sprintf("%s=%d", fault.name, i), func(t *testing.T) {
						t.Parallel()
						faulty.Add(1)
						w := s.run(begin, plan{fault: fault, write: point.key}, &mode{})
						if !w.hit {
							t.Errorf("there was no write %s", point.key)
						}
						w.mustEndAs(t, want, 0)
					})
				}
			}
			for seed := range int64(seeds) {
				t.Run(fmt.Sprintf("stale=%d", seed), func(t *testing.T) {
					t.Parallel()
					seeded.Add(1)
					s.run(begin, plan{}, &mode{random: rand.New(rand.NewSource(seed)), seed: seed, stale: true}).mustEndAs(t, want, s.extra)
				})
				t.Run(fmt.Sprintf("withheld=%d", seed), func(t *testing.T) {
					t.Parallel()
					seeded.Add(1)
					s.run(begin, plan{}, &mode{random: rand.New(rand.NewSource(seed)), seed: seed, withheld: true}).mustEndAs(t, want, s.extra)
				})
			}
		})
	}
}

// begin returns the world as a scenario finds it.
func (s scenario) begin(t *testing.T) *world {
	w := newScene()
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
	if more := got.made["Machine"] - want.made["Machine"]; extra > 0 && more >= -1 && more <= extra {
		got.made["Machine"] = want.made["Machine"]
	}
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
