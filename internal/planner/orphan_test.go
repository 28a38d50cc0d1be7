// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"slices"
	"testing"
)

// A Machine that has lost its infrastructure object is removed like others. While one of its Machines is such a one, a MachineSet does
// not report that it has acted on its replicas.
func TestOrphanOfMachineSet(t *testing.T) {
	orphan := Machine{Name: "o", Claim: "a", InstanceGone: true}
	others := []Machine{in("a"), in("b")}
	for name, tc := range map[string]struct {
		machines []Machine
		replicas int32
		set      MachineSet
		want     int32
		lost     []string
		letGo    []string
	}{
		"it is not marked yet":         {machines: append(others[1:2:2], orphan), replicas: 2, set: MachineSet{Replicas: 2}, want: 3, lost: []string{"o"}},
		"the same, and no claim waits": {machines: append(others[:2:2], orphan), replicas: 3, set: MachineSet{Replicas: 3}, want: 3, lost: []string{"o"}},
		"its claim waits for another":  {machines: append(others[1:2:2], orphan.chosen()), replicas: 3, set: MachineSet{Replicas: 3, Behind: true}, want: 3},
		"its claim has another":        {machines: append(others[:2:2], orphan.chosen()), replicas: 3, set: MachineSet{Replicas: 3, Behind: true}, want: 2},
		"the MachineSet deletes it":    {machines: append(others[:2:2], orphan.chosen()), replicas: 2, set: MachineSet{Replicas: 2, Behind: true}, want: 2},
		"the MachineSet has acted":     {machines: append(others[:2:2], orphan.chosen()), replicas: 2, set: MachineSet{Replicas: 2}, want: 2, letGo: []string{"o"}},
	} {
		t.Run(name, func(t *testing.T) {
			plan := decide(State{
				Replicas: tc.replicas,
				Claims:   []Claim{{UID: "a", Name: "a", NeedsMachine: true}, {UID: "b", Name: "b"}},
				Machines: tc.machines,
				Scaling:  tc.set,
			})
			if plan.Replicas != tc.want || !slices.Equal(plan.Lost, tc.lost) || !slices.Equal(plan.Deletable, tc.letGo) {
				t.Errorf("got %d replicas, %v lost and %v deletable; want %d, %v and %v", plan.Replicas, plan.Lost, plan.Deletable, tc.want, tc.lost, tc.letGo)
			}
		})
	}
}
