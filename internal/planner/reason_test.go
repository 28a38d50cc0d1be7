// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A plan has a reason for everything that it puts off.
func TestReasons(t *testing.T) {
	marked := func(m Machine) Machine { m.Leaving, m.Marked = true, true; return m }
	hooked := func(m Machine) Machine { m.Hooked = true; return m }
	seen := func(m Machine) Machine { m.LeavingSince = start; return m }
	one := []Machine{machine("m", 0)}
	for name, tc := range map[string]struct {
		state State
		want  map[string]Reason
	}{
		"nothing is left to do": {state: State{Replicas: 1, Claims: []Claim{claim("c", 0)}, Machines: []Machine{machine("m", 0).serves("c")}, Scaling: MachineSet{Replicas: 1}}},
		"a claim waits": {state: State{Replicas: 1, Claims: []Claim{claim("c", 0)}, Scaling: MachineSet{Replicas: 1}},
			want: map[string]Reason{"NodeClaim c": NoSpareMachine}},
		"a requested Machine is missing": {state: State{Replicas: 2, Machines: one, Scaling: MachineSet{Replicas: 2}},
			want: map[string]Reason{"replicas": RequestedNotCreated}},
		"an expired spare Machine, and a requested one is missing": {state: State{Replicas: 2, Machines: []Machine{machine("m", 0).expired()}, Scaling: MachineSet{Replicas: 2}},
			want: map[string]Reason{"replicas": RequestedNotCreated, "Machine m": RequestedNotCreated}},
		"replicas of a blocked MachineSet were lowered": {state: State{Replicas: 1, Claims: []Claim{claim("c", 0)}, Machines: one, Scaling: MachineSet{Replicas: 2, LoweredAt: now}},
			want: map[string]Reason{"replicas": LoweringInProgress, "NodeClaim c": LoweringInProgress}},
		"they were lowered, and a spare Machine has expired": {state: State{Replicas: 1, Machines: []Machine{machine("m", 0).expired()}, Scaling: MachineSet{Replicas: 2, LoweredAt: now}},
			want: map[string]Reason{"replicas": LoweringInProgress, "Machine m": LoweringInProgress}},
		"a blocked MachineSet could delete a booting Machine": {state: State{Replicas: 3, Claims: []Claim{claim("c", 0)}, Machines: []Machine{machine("m", 0).serves("c")}, Scaling: MachineSet{Replicas: 3, Blocked: true}},
			want: map[string]Reason{"replicas": OthersCouldBeDeleted}},
		"the MachineSet has not acted": {state: State{Machines: []Machine{marked(machine("m", 0))}, Scaling: MachineSet{Behind: true}},
			want: map[string]Reason{"Machine m": MachineSetBehind}},
		"the MachineSet has the higher number": {state: State{Machines: []Machine{marked(machine("m", 0))}, Scaling: MachineSet{Replicas: 1}},
			want: map[string]Reason{"Machine m": StillCounted}},
		"the infrastructure is not ready": {state: State{Claims: []Claim{claim("c", 0)}, Scaling: Pool{Unready: true}},
			want: map[string]Reason{"replicas": InfrastructureNotReady, "NodeClaim c": NoSpareMachine}},
		"the provider may not have seen the mark": {state: State{Replicas: 1, Machines: []Machine{marked(hooked(machine("m", 0)))}, Scaling: Pool{}},
			want: map[string]Reason{"Machine m": MarkNotSeen}},
		"the provider may not have seen replicas": {state: State{Machines: []Machine{seen(marked(hooked(machine("m", 0))))}, Scaling: Pool{ReplicasSetAt: now}},
			want: map[string]Reason{"Machine m": ReplicasNotSeen}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, decide(tc.state).Reasons); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
