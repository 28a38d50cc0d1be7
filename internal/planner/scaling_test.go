// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"slices"
	"testing"
)

// If a claim comes while Machines of a pool are deletable, one new Machine is requested. The
// deletable ones are not replaced.
func TestPoolLetsGoWhileAClaimComes(t *testing.T) {
	leaving := Machine{Leaving: true, HasNode: true, Marked: true, Hooked: true, MarkSeen: true}
	first, second := leaving, leaving
	first.Name, second.Name = "first", "second"
	for name, tc := range map[string]struct {
		settled  bool
		replicas int32
		letGo    []string
	}{
		"the provider has seen the replicas":      {settled: true, replicas: 2, letGo: []string{"first", "second"}},
		"the provider may not have seen them yet": {settled: false, replicas: 4},
	} {
		t.Run(name, func(t *testing.T) {
			plan := Decide(State{
				Replicas: 1,
				Claims:   []Claim{{UID: "served", Name: "served"}, {UID: "new", Name: "new", NeedsMachine: true}},
				Machines: []Machine{{Name: "live", Claim: "served", HasNode: true}, first, second},
				Scaling:  Pool{ReplicasSeen: tc.settled},
			})
			if plan.Replicas != tc.replicas || !slices.Equal(plan.Deletable, tc.letGo) {
				t.Errorf("got %d replicas, and %v deletable; want %d and %v", plan.Replicas, plan.Deletable, tc.replicas, tc.letGo)
			}
		})
	}
}

// A Machine is deletable only when it is not replaced: its MachineSet has acted on the lower number,
// and its MachineDeployment also has it and keeps it. A cache that is behind may lack replicas that
// the MachineSet has got since.
func TestMachineSetMayReplace(t *testing.T) {
	for name, tc := range map[string]struct {
		replicas, want int32
		set            MachineSet
		waiting        bool
		letGo          []string
	}{
		"the MachineDeployment has more":  {replicas: 3, set: MachineSet{Replicas: 2}, want: 2},
		"the MachineSet has more":         {replicas: 2, set: MachineSet{Replicas: 3}, want: 2},
		"the MachineSet has not acted":    {replicas: 2, set: MachineSet{Replicas: 2, Behind: true}, want: 2},
		"replicas are about to be raised": {replicas: 2, set: MachineSet{Replicas: 2}, waiting: true, want: 4},
		"all have the lower number":       {replicas: 2, set: MachineSet{Replicas: 2}, want: 2, letGo: []string{"c"}},
	} {
		t.Run(name, func(t *testing.T) {
			plan := Decide(State{
				Replicas: tc.replicas,
				Claims:   []Claim{{UID: "a", Name: "a"}, {UID: "b", Name: "b"}, {UID: "d", Name: "d", NeedsMachine: tc.waiting}},
				Machines: []Machine{in("a"), in("b"), in("c").chosen()},
				Scaling:  tc.set,
			})
			if plan.Replicas != tc.want || !slices.Equal(plan.Deletable, tc.letGo) {
				t.Errorf("got %d replicas, and %v deletable; want %d and %v", plan.Replicas, plan.Deletable, tc.want, tc.letGo)
			}
		})
	}
}

// If a MachineSet has acted on the lower number, replicas are lowered further. Waiting until it gets a
// higher number would keep the leaving Machines that it still counts.
func TestLowerNumberIsActedOn(t *testing.T) {
	for name, tc := range map[string]struct {
		set      MachineSet
		replicas int32
	}{
		"the number is on its way": {set: MachineSet{Replicas: 2, Lowered: true}, replicas: 1},
		"it has not acted on it":   {set: MachineSet{Replicas: 0, Behind: true, Lowered: true}, replicas: 1},
		"it has acted on it":       {set: MachineSet{Replicas: 0, Lowered: true}},
	} {
		t.Run(name, func(t *testing.T) {
			plan := Decide(State{Replicas: 1, Machines: []Machine{in("a").chosen()}, Scaling: tc.set})
			if plan.Replicas != tc.replicas {
				t.Errorf("got %d replicas, want %d", plan.Replicas, tc.replicas)
			}
		})
	}
}

// Lower replicas of a blocked MachineSet are raised again before it has acted on them, if it could
// delete a Machine that serves a claim because of them.
func TestLowerNumberIsTakenBack(t *testing.T) {
	served := machine("served", 0).serves("served")
	for name, tc := range map[string]struct {
		machines []Machine
		want     int32
	}{
		"a spare Machine":               {machines: []Machine{machine("spare", 0)}},
		"a Machine that serves a claim": {machines: []Machine{served}, want: 1},
		"a Machine with a Node":         {machines: []Machine{served.node("id")}, want: 1},
		"a leaving Machine":             {machines: []Machine{in("leaving").chosen()}},
	} {
		t.Run(name, func(t *testing.T) {
			plan := Decide(State{Claims: []Claim{{UID: "served", Name: "served"}}, Machines: tc.machines, Scaling: MachineSet{Replicas: 1, Lowered: true}})
			if plan.Replicas != tc.want {
				t.Errorf("got %d replicas, want %d", plan.Replicas, tc.want)
			}
		})
	}
}

// While a pool is not settled, its replicas are not lowered and none of its Machines is deleted. Replicas that
// were lowered before are not raised again, and a new claim gets its Machine.
func TestPoolSettles(t *testing.T) {
	marked := Machine{Name: "marked", Leaving: true, HasNode: true, Marked: true, Hooked: true, MarkSeen: true}
	live := Machine{Name: "live", Claim: "served", HasNode: true}
	for name, tc := range map[string]struct {
		unsettled, claim bool
		replicas, want   int32
		letGo            []string
	}{
		"settled, before the lower replicas":     {replicas: 2, want: 1},
		"settled, after the lower replicas":      {replicas: 1, want: 1, letGo: []string{"marked"}},
		"not settled, before the lower replicas": {unsettled: true, replicas: 2, want: 2},
		"not settled, after the lower replicas":  {unsettled: true, replicas: 1, want: 1},
		"not settled, and a claim comes":         {unsettled: true, claim: true, replicas: 1, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			claims := []Claim{{UID: "served", Name: "served"}}
			if tc.claim {
				claims = append(claims, Claim{UID: "new", Name: "new", NeedsMachine: true})
			}
			plan := Decide(State{Replicas: tc.replicas, Claims: claims, Machines: []Machine{live, marked}, Scaling: Pool{ReplicasSeen: true, Unsettled: tc.unsettled}})
			if plan.Replicas != tc.want || !slices.Equal(plan.Deletable, tc.letGo) {
				t.Errorf("got %d replicas, and %v deletable; want %d and %v", plan.Replicas, plan.Deletable, tc.want, tc.letGo)
			}
		})
	}
}
