// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
)

// A condition of a script may never be met when the clock was set, because a claim can have failed early, or in an outage,
// because a Machine can have become too old for another claim. After so long
// the next step happens nevertheless, and after the last one nothing is held back any longer.
const (
	toNextStep = 20 * time.Minute
	toRelease  = quiet - time.Minute
)

// machineClock is the clock of the machine on which the operator runs. It can be set. Nothing waits for its timers.
type machineClock struct {
	clock.Clock
	simulation *simulation
}

// Now returns the time of the API server, and by how much the machine's clock differs.
func (c machineClock) Now() time.Time { return c.simulation.clock.Now().Add(c.simulation.skew) }

// Since returns the time since then by this clock.
func (c machineClock) Since(then time.Time) time.Duration { return c.Now().Sub(then) }

// jump sets the clock of the operator's machine.
func (w *simulation) jump() {
	w.jumped++
	by := []time.Duration{time.Minute, time.Hour, -time.Minute, -time.Hour}[w.mode.random.Intn(4)]
	w.skew += by
	w.tracef("the clock of the operator's machine is set by %s", by)
	w.endWithJump()
}

// endWithJump ends the process while the clock is being set, if the mode has both. The next one starts at once or
// later, and can run on another machine, whose clock is right.
func (w *simulation) endWithJump() {
	if w.process == nil || !w.mode.stale || w.mode.random.Intn(2) == 0 {
		return
	}
	w.down = time.Duration(w.mode.random.Intn(2)) * down
	w.stop(w.process, "restarts")
	if w.mode.random.Intn(3) == 0 {
		w.tracef("it will run on another machine, whose clock is right")
		w.skew = 0
	}
}

// isDisordered reports whether a claim or a Machine can have ended that a script still refers to.
func (w *simulation) isDisordered() bool { return w.jumped > 0 || w.mode.breaksAny() }

// isDue reports whether a step of a script happens now.
func (w *simulation) isDue(s step) bool {
	return s.when(w) || w.isDisordered() && w.clock.Since(w.lastStep) > toNextStep
}

// release ends what a script holds back until a condition is met that can no longer be met.
func (w *simulation) release() {
	if w.isDisordered() && len(w.script) == 0 && w.clock.Since(w.lastStep) > toRelease {
		w.holds, w.alone, w.keeps = nil, nil, nil
	}
}

// renewTimes lets a new process correct the times that are in the future, because they were written before the clock was
// right again, and do what follows. Nothing triggers a reconcile then.
func (w *simulation) renewTimes() {
	w.process, w.lastChange = nil, w.clock.Now()
	for begin := w.clock.Now(); w.failure == "" && (w.process == nil || w.old != nil || len(w.late) > 0 || w.clock.Since(w.lastChange) < quiet); {
		if w.clock.Since(begin) > longest {
			w.fail("it does not settle after times were corrected")
		}
		w.round()
	}
}

// wrongAfterJump returns how a run with clocks that were set was worse than a clean one: timers of a process that has just
// started can end early. So there can be a claim more for each that failed, and a Machine more for each of these and for
// each that was deleted before it had a Node or a claim. If no claim failed early, the run ends as a clean one.
func wrongAfterJump(got, want outcome, known ledger) string {
	failed, unused := got.failed-want.failed, got.unusedMore(want)
	if diff := cmp.Diff(coarse(want), coarse(got)); diff != "" && failed <= 0 {
		return fmt.Sprintf("it does not end as a clean run, apart from zones (-want +got):\n%s", diff)
	}
	claims, machines := got.made["NodeClaim"]-want.made["NodeClaim"], got.made["Machine"]-want.made["Machine"]
	if claims > max(0, failed)+known.lostNodes || machines > max(0, failed)+unused+known.surplus+known.asked+known.lost {
		return fmt.Sprintf("it creates %v, a clean run %v; %d claims more failed, and %d Machines more were deleted before they had a Node or a claim; known losses: %+v",
			got.made, want.made, failed, unused, known)
	}
	return ""
}

var zoneOrAnnotations = regexp.MustCompile(` (zone=\S+|hashes=\S+|annotations=\[.*\])`)

// coarse returns the claims, Machines and Nodes of an outcome without their zones, hashes and annotations.
func coarse(o outcome) []string {
	var objects []string
	for _, line := range o.state {
		if strings.HasPrefix(line, "NodeClaim ") || strings.HasPrefix(line, "Machine ") || strings.HasPrefix(line, "Node ") {
			objects = append(objects, zoneOrAnnotations.ReplaceAllString(line, ""))
		}
	}
	slices.Sort(objects)
	return append(objects, fmt.Sprintf("replicas %d", o.replicas))
}

func TestWrongAfterJump(t *testing.T) {
	with := func(claims, machines, failed, unclaimed int, state ...string) outcome {
		return outcome{made: map[string]int{"NodeClaim": claims, "Machine": machines}, failed: failed, unclaimed: unclaimed, state: state, replicas: 1}
	}
	want := with(1, 1, 0, 0, "Machine zone=zone-a serves=true annotations=[]")
	want.nodeless = 1
	for name, test := range map[string]struct {
		got   outcome
		wrong bool
	}{
		"the same":                              {got: want},
		"in another zone":                       {got: with(1, 1, 0, 0, "Machine zone=zone-b serves=true annotations=[x]")},
		"another Machine is left":               {got: with(1, 1, 0, 0, "Machine zone=zone-a serves=false annotations=[]"), wrong: true},
		"a Machine more":                        {got: with(1, 2, 0, 0, want.state...), wrong: true},
		"a Machine more, as one was not used":   {got: with(1, 2, 0, 1, want.state...)},
		"a claim more":                          {got: with(2, 1, 0, 0, want.state...), wrong: true},
		"a claim more, as one failed":           {got: with(2, 2, 1, 0)},
		"two Machines more, and 1 claim failed": {got: with(2, 3, 1, 0), wrong: true},
	} {
		t.Run(name, func(t *testing.T) {
			if wrong := wrongAfterJump(test.got, want, newLedger()); (wrong != "") != test.wrong {
				t.Errorf("got %q, want wrong: %t", wrong, test.wrong)
			}
		})
	}
}
