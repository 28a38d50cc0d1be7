// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-capi/karpenter-capi/test/harness/counts"
	"github.com/karpenter-capi/karpenter-capi/test/harness/rotation"
)

const (
	// seeds is how often each scenario runs in each mode.
	seeds = 60
	// parts is the number of test runs for a complete search: each run does another part of the
	// faults at one write and of the seeds (test/harness/rotation). Consecutive writes, and the faults of
	// one write, are in different parts: so in each part, every scenario (that has as many writes
	// as there are parts) has some of each fault, and some of each mode. No write is
	// left out by all parts.
	parts = 30
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
					t.Run(s.name, func(t *testing.T) { s.prepare(t, of).search(t) })
				}
			}
		})
	}
}

// tell prints the size of the search.
func (of *scaling) tell(t *testing.T) {
	counts.Print(t, fmt.Sprintf("crash search, %s: %d scenarios, %d runs with one fault, %d runs with a seed, in %d of which a Machine was lost in a known way, and in %d of which a clock was set (%d of these had to end as a clean run); this is %s",
		of.name, of.scenarios.Load(), of.faulty.Load(), of.seeded.Load(), of.lost.Load(), of.jumped.Load(), of.same.Load(), rotation.Part(t, parts)))
}

// search is all runs of a scenario with one kind of scalable resource.
type search struct {
	scenario
	of *scaling
	// begin is the simulation in which all runs begin, and want the outcome of a clean one.
	begin *simulation
	want  outcome
	runs  []run
}

// run is one run with a disturbance: a plan for one fault, or a mode with a seed.
type run struct {
	name string
	// part is the part of the search that it belongs to.
	part int
	plan plan
	mode mode
	seed int64
}

// prepare runs the scenario without any disturbance, and returns the runs with each.
func (s scenario) prepare(t testing.TB, of *scaling) *search {
	all := &search{scenario: s, of: of, begin: s.begin(t, of)}
	clean := all.do(run{}, nil)
	clean.mustHold(t)
	made, left := clean.made("Machine")-all.begin.made("Machine"), len(clean.machines())
	if made != s.machines || left != s.left {
		t.Fatalf("a clean run creates %d Machines and leaves %d; want %d and %d\n%s", made, left, s.machines, s.left, clean.lastOf(traced))
	}
	all.want = clean.outcome()
	for f, fault := range faults {
		for i, point := range faultPoints(clean.requests, fault) {
			all.runs = append(all.runs, run{name: fmt.Sprintf("%s=%d", fault.name, i), part: f + i, plan: plan{fault: fault, request: point.key}})
		}
	}
	for m, mode := range modes {
		for seed := range seeds {
			all.runs = append(all.runs, run{name: fmt.Sprintf("%s=%d", mode.name, seed), part: m + seed, mode: mode, seed: int64(seed)})
		}
	}
	return all
}

// begin returns the simulation at the start of a scenario.
func (s scenario) begin(t testing.TB, of *scaling) *simulation {
	w := newScene(of)
	w.wanted = s.before
	w.run()
	w.mustHold(t)
	return w
}

// search does the runs of the current part.
func (s *search) search(t *testing.T) {
	for _, r := range s.runs {
		if !rotation.Takes(t, parts, r.part) {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			w := s.do(r, nil)
			if wrong := s.wrong(r, w); wrong != "" {
				t.Errorf("%s\nwhat happened:\n%s", wrong, w.lastOf(traced))
			}
			if r.plan.request != "" {
				s.of.faulty.Add(1)
			} else {
				s.of.seeded.Add(1)
			}
			if w.ledger.lost > 0 {
				s.of.lost.Add(1)
			}
			if w.jumped > 0 {
				s.of.jumped.Add(1)
				if w.ledger.failed <= s.want.failed {
					s.of.same.Add(1)
				}
			}
		})
	}
}

// do does one run, with a bug if there is one.
func (s *search) do(r run, bug *mutant) *simulation {
	w := s.begin.clone()
	w.plan, w.script, w.known, w.mode, w.mutant = r.plan, s.script, s.known, r.mode.with(r.seed), bug
	w.run()
	return w
}

func (w *simulation) mustHold(t testing.TB) {
	t.Helper()
	if w.failure != "" {
		t.Fatalf("%s\n%s", w.failure, w.lastOf(traced))
	}
}

// wrong returns how a run was worse than a clean one; empty if it was not. It can have created more
// or fewer Machines because of its ledger, unless it must create exactly as many.
func (s *search) wrong(r run, w *simulation) string {
	switch {
	case w.failure != "":
		return w.failure
	case r.plan.request != "" && !w.hit && w.mutant == nil:
		return fmt.Sprintf("there was no request %s", r.plan.request)
	}
	got, want := w.outcome(), s.want
	// If core gives up on a claim because an outage is long, or a claim fails while a script still holds Machines back, the
	// next step finds other claims than in a clean run.
	if w.jumped > 0 || w.mode.breaksAny() && (got.expired > want.expired || w.ledger.overdue > 0) {
		return wrongAfterJump(got, want, w.ledger)
	}
	late := 0 // Machines that an outage kept from a claim until they were too old for it
	if w.mode.breaksAny() {
		late = got.unusedMore(want)
	}
	exactly := r.plan.request != "" && r.plan.fault.exactly()
	for _, kind := range []string{"Machine", instanceKind} {
		if more := got.made[kind] - want.made[kind]; more < 0 && more >= -w.ledger.handed || !exactly && more > 0 && more <= w.ledger.surplus+w.ledger.asked+w.ledger.lost+late {
			got.made[kind] = want.made[kind]
		}
	}
	// Karpenter creates another claim for the Pods of a Node that was lost. If it had not registered the Node yet, the
	// claim stays, and gets another Machine.
	if more := got.made["NodeClaim"] - want.made["NodeClaim"]; more > 0 && more <= w.ledger.lostNodes {
		got.made["NodeClaim"] = want.made["NodeClaim"]
	}
	// A template that is not known to be unusable makes Karpenter create claims, which cannot get Machines and end.
	// Copies that are no longer used are deleted after some time, which an outage makes longer.
	if w.clusterEnds() {
		got.made["NodeClaim"] = want.made["NodeClaim"]
		got.state, want.state = withoutCopies(got.state), withoutCopies(want.state)
	}
	if w.mode.breaksAny() {
		// The mark on an offering can end meanwhile, so that another resource is used.
		if slices.ContainsFunc(want.state, func(line string) bool { return strings.HasPrefix(line, "unavailable") }) {
			got.state, want.state = coarse(got), coarse(want)
			for _, kind := range []string{"MachineDeployment", "MachineSet", "MachinePool", groupKind} {
				got.made[kind] = want.made[kind]
			}
		}
	}
	if diff := cmp.Diff(want.state, got.state); diff != "" {
		return fmt.Sprintf("it does not end as a clean run (-want +got):\n%s", diff)
	}
	if !maps.Equal(want.made, got.made) {
		return fmt.Sprintf("it creates %v, a clean run %v; known losses: %+v", got.made, want.made, w.ledger)
	}
	return ""
}

// withoutCopies returns the objects of an outcome without copies of base templates.
func withoutCopies(state []string) []string {
	return slices.DeleteFunc(slices.Clone(state), func(line string) bool { return strings.Contains(line, " generated=true ") })
}
