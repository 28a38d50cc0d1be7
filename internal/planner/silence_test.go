// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/karpenter-capi/karpenter-capi/internal/failure"
	"github.com/karpenter-capi/karpenter-capi/test/harness/property"
)

// While Machines progress elsewhere, a stall that only the missing action shows is reported later. All durations are in
// seconds, with launchTimeoutSeconds 600 and 30 for NoProgress.
func TestSilentStall(t *testing.T) {
	for name, tc := range map[string]struct {
		waits, progressed int // before now; nothing progressed if that is negative
		served            bool
		known             bool // something else than the missing action shows the stall
		stalled           bool // the claim has the condition
		timeout           int  // launchTimeoutSeconds, if not 600
		want              bool
		due               int
	}{
		"nothing ever progressed":                       {waits: 30, progressed: -1, want: true, due: 570},
		"nothing progressed for long enough":            {waits: 60, progressed: 30, want: true, due: 540},
		"something progressed 20 seconds ago":           {waits: 60, progressed: 20, due: 10},
		"of a Machine, nothing progressed":              {waits: 60, progressed: 30, served: true, want: true, due: 540},
		"of a Machine, something progressed":            {waits: 60, progressed: 20, served: true, due: 10},
		"its time ends before that of the progress":     {waits: 295, progressed: 0, due: 5},
		"something progresses, and it waits 5 minutes":  {waits: 300, progressed: 0, want: true, due: 300},
		"of a Machine that waits 5 minutes":             {waits: 300, progressed: 0, served: true, want: true, due: 300},
		"half of a short launchTimeoutSeconds is over":  {waits: 50, progressed: 0, timeout: 100, want: true, due: 50},
		"less than half of it is over":                  {waits: 40, progressed: 0, timeout: 100, due: 10},
		"launchTimeoutSeconds is as short as the time":  {waits: 30, progressed: 0, timeout: 30, want: true},
		"something else shows the stall":                {waits: 60, progressed: 0, known: true, want: true, due: 540},
		"the claim has it already":                      {waits: 60, progressed: 0, stalled: true, want: true, due: 30},
		"of a Machine, and the claim has it already":    {waits: 60, progressed: 0, served: true, stalled: true, want: true, due: 30},
		"of a Machine, something else shows it":         {waits: 60, progressed: 0, served: true, known: true, want: true, due: 540},
		"of a Machine, with a short launchTimeout":      {waits: 50, progressed: 0, served: true, timeout: 100, want: true, due: 50},
		"of a Machine, less than half of that has gone": {waits: 40, progressed: 0, served: true, timeout: 100, due: 10},
	} {
		t.Run(name, func(t *testing.T) {
			ago := func(seconds int) time.Time { return now.Add(-time.Duration(seconds) * time.Second) }
			stall := Stall{Reason: "NoProgress", Message: "nothing acts", Silent: !tc.known}
			state := State{Now: now, Exists: true, Replicas: 1, Claims: []Claim{claim("c", 0)}}
			state.Durations = Durations{LaunchTimeout: 10 * time.Minute, SpareTTL: time.Hour, NoProgress: 30 * time.Second}
			if tc.timeout > 0 {
				state.Durations.LaunchTimeout = time.Duration(tc.timeout) * time.Second
			}
			state.Claims[0].Created, state.Claims[0].Stalled = ago(tc.waits), tc.stalled
			if tc.served {
				machine := machine("m", 0).serves("c")
				machine.Created, machine.Stall = ago(tc.waits), stall
				state.Machines = []Machine{machine}
			} else {
				state.Stall = stall
			}
			if tc.progressed >= 0 {
				state.ProgressedAt = ago(tc.progressed)
			}
			plan := Decide(&state)
			outcome := plan.Outcomes["c"]
			if reported := outcome.Stall == stall; reported != tc.want {
				t.Errorf("reported: %t, want %t", reported, tc.want)
			}
			if outcome.Failure != (failure.Failure{}) || outcome.Resumes {
				t.Errorf("got the outcome %+v of a stalled launch", outcome)
			}
			if want := time.Duration(tc.due) * time.Second; plan.Due.In != want {
				t.Errorf("due in %s, want %s", plan.Due.In, want)
			}
		})
	}
}

// Progress elsewhere never makes a claim fail, and never ends a stall that is reported. It only delays the report.
func TestProgressOnlyDelaysReports(t *testing.T) {
	property.Check(t, 5000, func(t *rapid.T) {
		state := randomLaunches.Draw(t, "state")
		busy := *state
		busy.ProgressedAt = past.Draw(t, "progressed")
		state.ProgressedAt = time.Time{}
		want, got := Decide(state).Outcomes, Decide(&busy).Outcomes
		for _, claim := range state.Claims {
			outcome := got[claim.UID]
			if outcome == want[claim.UID] {
				continue
			}
			stall := want[claim.UID].Stall
			outcome.Stall = stall
			if outcome != want[claim.UID] || !stall.Silent || claim.Stalled {
				t.Fatalf("NodeClaim %s has the outcome %+v, and %+v if nothing progresses", claim.Name, got[claim.UID], want[claim.UID])
			}
		}
	})
}
