// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// An adopted resource keeps as many unmanaged Machines as it had: those that existed before and, for those that no longer
// exist, the oldest of the others that have never served a claim.
func TestUnmanagedMachines(t *testing.T) {
	linked := func(m Machine) Machine { m.WasLinked = true; return m }
	withID := func(m Machine) Machine { m.ProviderID = "real://" + m.Name; return m }
	for name, tc := range map[string]struct {
		notAdopted   bool
		replicas     int32
		claims       []Claim
		machines     []Machine
		want, spares []string
		wantReplicas int32
	}{
		"none":                                   {replicas: 0, wantReplicas: 2},
		"those that existed before":              {replicas: 2, machines: []Machine{machine("b", 10), machine("a", 5)}, want: []string{"a", "b"}, wantReplicas: 2},
		"more than the operator must keep":       {replicas: 3, machines: []Machine{machine("a", 5), machine("b", 6), machine("c", 10)}, want: []string{"a", "b", "c"}, wantReplicas: 3},
		"one is being deleted, and is replaced":  {replicas: 2, machines: []Machine{machine("a", 5).leaving(), machine("b", 6)}, want: []string{"b"}, wantReplicas: 3},
		"one no longer exists, and is requested": {replicas: 2, machines: []Machine{machine("b", 6)}, want: []string{"b"}, wantReplicas: 2},
		"its replacement, which is the oldest":   {replicas: 3, machines: []Machine{machine("b", 6), machine("d", 30), machine("c", 20)}, want: []string{"b", "c"}, spares: []string{"d"}, wantReplicas: 3},
		"one that is younger":                    {replicas: 3, machines: []Machine{machine("a", 5), machine("b", 10), machine("c", 11)}, want: []string{"a", "b"}, spares: []string{"c"}, wantReplicas: 3},
		"one that has served a claim":            {replicas: 2, machines: []Machine{machine("b", 6), linked(machine("c", 20))}, want: []string{"b"}, spares: []string{"c"}, wantReplicas: 3},
		"one that serves a claim":                {replicas: 2, claims: []Claim{claim("x", 0)}, machines: []Machine{machine("b", 6), machine("c", 20).serves("x")}, want: []string{"b"}, wantReplicas: 3},
		"one whose link a user has removed": {replicas: 2, claims: []Claim{claim("x", 0).registered("real://c")}, machines: []Machine{machine("b", 6), withID(machine("c", 20))},
			want: []string{"b"}, wantReplicas: 3},
		"a claim without an ID has no Machine": {replicas: 2, claims: []Claim{{UID: "x", Name: "x"}}, machines: []Machine{machine("a", 5), machine("b", 6)}, want: []string{"a", "b"}, wantReplicas: 2},
		"a claim waits":                        {replicas: 2, claims: []Claim{claim("x", 0)}, machines: []Machine{machine("a", 5), machine("b", 6)}, want: []string{"a", "b"}, wantReplicas: 3},
		"of a generated resource":              {notAdopted: true, replicas: 1, machines: []Machine{machine("a", 5)}, spares: []string{"a"}, wantReplicas: 1},
	} {
		t.Run(name, func(t *testing.T) {
			state := State{Replicas: tc.replicas, Claims: tc.claims, Machines: tc.machines, Unmanaged: 2, UnmanagedUntil: start.Add(10 * time.Second)}
			if tc.notAdopted {
				state.Unmanaged, state.UnmanagedUntil = 0, time.Time{}
			}
			plan := decide(state)
			if diff := cmp.Diff(tc.want, plan.Unmanaged); diff != "" {
				t.Errorf("unmanaged (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.spares, plan.Spares); diff != "" {
				t.Errorf("spare (-want +got):\n%s", diff)
			}
			if plan.Replicas != tc.wantReplicas || len(plan.Marks) > 0 {
				t.Errorf("got %d replicas, want %d; marked: %v", plan.Replicas, tc.wantReplicas, plan.Marks)
			}
		})
	}
}
