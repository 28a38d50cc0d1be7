// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// However long a burst of claims lasts, few writes raise replicas.
func TestPace(t *testing.T) {
	for name, tc := range map[string]struct {
		burst time.Duration
		want  int
	}{
		"at once":         {burst: 0, want: 1},
		"two seconds":     {burst: 2 * time.Second, want: 2},
		"ten seconds":     {burst: 10 * time.Second, want: 4},
		"fifteen seconds": {burst: 15 * time.Second, want: 6},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
			r := &Reconciler{clock: clock}
			writes, end := 0, clock.Now().Add(tc.burst)
			for !clock.Now().After(end) {
				if r.untilNextRaise("x") <= 0 {
					r.noteRaise("x")
					writes++
				}
				clock.Step(100 * time.Millisecond)
			}
			if writes != tc.want {
				t.Errorf("got %d writes, want %d", writes, tc.want)
			}
			// A minute after a burst, replicas are raised at once, and again after minPace.
			clock.Step(time.Minute)
			if wait := r.untilNextRaise("x"); wait > 0 {
				t.Errorf("a claim a minute after the burst waits %s", wait)
			}
			r.noteRaise("x")
			if wait := r.untilNextRaise("x"); wait != minPace {
				t.Errorf("the next write is due in %s, want %s", wait, minPace)
			}
			if wait := r.untilNextRaise("y"); wait > 0 {
				t.Errorf("one resource delays another for %s", wait)
			}
		})
	}
}
