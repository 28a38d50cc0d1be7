// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"slices"
	"testing"
)

func (m Machine) marked() Machine { m.Leaving, m.Marked = true, true; return m }

// ending is a Machine that is deleted with its MachineSet.
func (m Machine) ending() Machine { m.Leaving, m.Ending = true, true; return m }

// Nothing replaces a Machine that is deleted with its MachineSet, and the next MachineSet does not count it.
func TestEndingMachines(t *testing.T) {
	for name, tc := range map[string]struct {
		state     State
		replicas  int32
		deletable []string
	}{
		"replicas count a marked Machine": {
			state:    State{Replicas: 2, Claims: []Claim{claim("a", 0)}, Machines: []Machine{machine("m", 0).marked()}, Scaling: MachineSet{Replicas: 2}},
			replicas: 2,
		},
		"replicas count it, and its MachineSet is being deleted": {
			state:    State{Replicas: 2, Claims: []Claim{claim("a", 0)}, Machines: []Machine{machine("m", 0).marked().ending()}, Scaling: MachineSet{Replicas: 2}},
			replicas: 2, deletable: []string{"m"},
		},
		"one of two is drained": {
			state:    State{Replicas: 2, Machines: []Machine{machine("m", 0).marked().ending(), machine("n", 0).ending()}, Scaling: MachineSet{Behind: true}},
			replicas: 0, deletable: []string{"m"},
		},
		"a claim waits for the next MachineSet": {
			state:    State{Replicas: 2, Claims: []Claim{claim("a", 0)}, Machines: []Machine{machine("m", 0).ending(), machine("n", 0).ending()}, Scaling: MachineSet{}},
			replicas: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan := decide(tc.state)
			if plan.Replicas != tc.replicas || !slices.Equal(plan.Deletable, tc.deletable) {
				t.Errorf("got %d replicas, and %v deletable, want %d and %v; reasons: %v", plan.Replicas, plan.Deletable, tc.replicas, tc.deletable, plan.Reasons)
			}
		})
	}
}
