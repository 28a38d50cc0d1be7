// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// A claim that exceeds a limit gets no Machine, so no resource is created for it either. One that has a Machine keeps it.
func TestWaiting(t *testing.T) {
	overLimit := func(c Claim) Claim { c.OverLimit = true; return c }
	notLaunched := claim("not launched", 0)
	notLaunched.NeedsMachine = false
	plan := decide(State{
		Claims: []Claim{
			claim("waiting", 0), claim("served", 0), notLaunched, overLimit(claim("over", 0)), overLimit(claim("over, and served", 0)),
			overLimit(claim("over, and its Machine leaves", 0)), overLimit(claim("over, and its link is being written", 0)),
		},
		Open: map[types.UID]string{"over, and its link is being written": "opening"},
		Machines: []Machine{
			machine("m", 0).serves("served"), machine("n", 0).serves("over, and served"),
			machine("leaving", 0).serves("over, and its Machine leaves").leaving(), machine("opening", 0),
		},
	})
	for uid, want := range map[types.UID]bool{
		"waiting": true, "served": false, "not launched": false, "over": false, "over, and served": false,
		"over, and its Machine leaves": true, "over, and its link is being written": false,
	} {
		if got := plan.Waiting.Has(uid); got != want {
			t.Errorf("a claim that is %s waits: %t, want %t", uid, got, want)
		}
	}
	if got := plan.Served["over, and its link is being written"]; got != "opening" {
		t.Errorf("a claim over the limit whose link is being written is served by %q", got)
	}
}

// A plan says why a claim gets no Machine, or why replicas stay as they are, if that is not decided with the Machines.
func TestReasonsWithoutMachines(t *testing.T) {
	for name, tc := range map[string]struct {
		state State
		limit bool // is reached
		ends  bool // the claim
		want  map[string]Reason
	}{
		"a limit was reached":    {limit: true, ends: true},
		"a claim waits":          {want: map[string]Reason{"NodeClaim c": NoSpareMachine}},
		"a limit is reached":     {limit: true, want: map[string]Reason{"NodeClaim c": LimitIsReached}},
		"the Cluster is deleted": {state: State{ClusterDeleting: true}, want: map[string]Reason{"replicas": ClusterIsDeleting}},
		"the resource rolls out": {state: State{Suspended: true}, want: map[string]Reason{"replicas": ControlledByOthers}},
		"both, with a limit": {state: State{Suspended: true, ClusterDeleting: true}, limit: true,
			want: map[string]Reason{"NodeClaim c": LimitIsReached, "replicas": ControlledByOthers}},
	} {
		t.Run(name, func(t *testing.T) {
			waiting := claim("c", 0)
			waiting.OverLimit = tc.limit
			if tc.ends {
				waiting = waiting.gone()
			}
			tc.state.Claims = []Claim{waiting}
			if diff := cmp.Diff(tc.want, decide(tc.state).Reasons); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
