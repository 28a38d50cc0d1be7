// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"testing"
	"time"
)

// A provider of a MachinePool must have seen replicas and a mark when the settle time has passed since they were written, and
// has recovered from a disturbance at the time that it settles.
func TestSettleTime(t *testing.T) {
	settled := now.Add(-time.Minute)
	for name, tc := range map[string]struct {
		ago       time.Duration // since the settle time has passed
		unmarked  bool
		want      bool
		unsettled bool
	}{
		"a moment is missing":                   {ago: -1, unsettled: true},
		"it has just passed":                    {want: true},
		"it has passed an hour ago":             {ago: time.Hour, want: true},
		"it has passed, and nothing was marked": {ago: time.Hour, unmarked: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			state := complete(State{Machines: []Machine{{Name: "m", Leaving: true, Marked: !tc.unmarked, LeavingSince: settled.Add(-tc.ago)}}})
			pool := Pool{ReplicasSetAt: settled.Add(-tc.ago), SettlesAt: now.Add(-tc.ago)}
			state.Scaling = pool
			if got := pool.replicasSeen(state); got != tc.want {
				t.Errorf("it has seen the replicas: %t, want %t", got, tc.want)
			}
			if got, want := state.markSeen(state.Machines[0]), tc.want && !tc.unmarked; got != want {
				t.Errorf("it has seen the mark: %t, want %t", got, want)
			}
			if got := state.Unsettled(); got != tc.unsettled {
				t.Errorf("it is unsettled: %t, want %t", got, tc.unsettled)
			}
		})
	}
}
