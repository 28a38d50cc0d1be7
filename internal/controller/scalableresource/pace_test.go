// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// The pace keeps the writes of a burst few, and delays no trickle: a claim waits for its raise longer than
// half a second only if many others come at the same time.
func TestPace(t *testing.T) {
	for name, tc := range map[string]struct {
		claims   int
		every    time.Duration // between two claims
		writes   int           // that raise replicas
		maxDelay time.Duration // of a claim until the write for it
	}{
		"one claim":                          {claims: 1, writes: 1},
		"a trickle":                          {claims: 300, every: 2 * time.Second, writes: 300},
		"a trickle that lasts twice as long": {claims: 600, every: 2 * time.Second, writes: 600},
		"twice a second":                     {claims: 120, every: 500 * time.Millisecond, writes: 120},
		"100 at once":                        {claims: 100, writes: 1},
		"five a second":                      {claims: 100, every: 200 * time.Millisecond, writes: 41, maxDelay: minPace},
		"100 in ten seconds":                 {claims: 100, every: 100 * time.Millisecond, writes: 21, maxDelay: minPace},
		"1,000 in ten seconds":               {claims: 1000, every: 10 * time.Millisecond, writes: 10, maxDelay: maxPace},
		"5,000 in a minute":                  {claims: 5000, every: 12 * time.Millisecond, writes: 35, maxDelay: maxPace},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
			start, p := clock.Now(), pace{}
			writes, covered, maxDelay := 0, 0, time.Duration(0)
			cameAt := func(claim int) time.Time { return start.Add(time.Duration(claim) * tc.every) }
			for covered < tc.claims {
				came := covered
				for came < tc.claims && !cameAt(came).After(clock.Now()) {
					came++
				}
				if came > covered && p.wait(clock.Now()) <= 0 {
					maxDelay = max(maxDelay, clock.Since(cameAt(covered)))
					p.note(clock.Now(), int32(came-covered))
					writes, covered = writes+1, came
				}
				clock.Step(2 * time.Millisecond)
			}
			if writes != tc.writes || maxDelay > tc.maxDelay {
				t.Errorf("got %d writes for %d claims (%.3f for each) and a delay of up to %s, want %d and at most %s",
					writes, tc.claims, float64(writes)/float64(tc.claims), maxDelay, tc.writes, tc.maxDelay)
			}
			clock.Step(burstWindow)
			if wait := p.wait(clock.Now()); wait > 0 {
				t.Errorf("a claim %s after the burst waits %s", burstWindow, wait)
			}
		})
	}
}

// What the clock was when replicas were raised does not matter for longer than the pace.
func TestPaceAfterClockWasSet(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	p := pace{}
	p.note(clock.Now(), 500)
	if got, want := p.wait(clock.Now()), 2*time.Second; got != want {
		t.Errorf("the next raise is due in %s, want %s", got, want)
	}
	clock.Step(-time.Hour)
	if wait := p.wait(clock.Now()); wait > 0 {
		t.Errorf("after the clock was set back, a raise waits %s", wait)
	}
	p.note(clock.Now(), 1)
	if wait := p.wait(clock.Now()); wait != minPace {
		t.Errorf("the raise after that is due in %s, want %s", wait, minPace)
	}
}

// However large a burst is, the next raise is not later than maxPace.
func TestPaceHasALimit(t *testing.T) {
	p, now := pace{}, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p.note(now, 5000)
	if got := p.wait(now); got != maxPace {
		t.Errorf("the next raise is due in %s, want %s", got, maxPace)
	}
}
