// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/types"
)

// in returns a Machine with a Node, which serves the claim of its name.
func in(name string) Machine {
	return Machine{Name: name, Claim: types.UID(name), ProviderID: name, HasNode: true}
}

func (m Machine) chosen() Machine { m.Leaving, m.Marked = true, true; return m }

// If a claim comes while Machines of a pool are deletable, one new Machine is requested. The
// deletable ones are not replaced.
func TestPoolLetsGoWhileAClaimComes(t *testing.T) {
	leaving := Machine{Leaving: true, HasNode: true, Marked: true, Hooked: true, LeavingSince: start}
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
			plan := decide(State{
				Replicas: 1,
				Claims:   []Claim{{UID: "served", Name: "served"}, {UID: "new", Name: "new", NeedsMachine: true}},
				Machines: []Machine{{Name: "live", Claim: "served", HasNode: true}, first, second},
				Scaling:  Pool{ReplicasSetAt: lo.Ternary(tc.settled, start, now)},
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
			plan := decide(State{
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
		"the number is on its way": {set: MachineSet{Replicas: 2, LoweredAt: now}, replicas: 1},
		"it has not acted on it":   {set: MachineSet{Replicas: 0, Behind: true, LoweredAt: now}, replicas: 1},
		"it has acted on it":       {set: MachineSet{Replicas: 0, LoweredAt: now}},
	} {
		t.Run(name, func(t *testing.T) {
			plan := decide(State{Replicas: 1, Machines: []Machine{in("a").chosen()}, Scaling: tc.set})
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
			plan := decide(State{Claims: []Claim{{UID: "served", Name: "served"}}, Machines: tc.machines, Scaling: MachineSet{Replicas: 1, LoweredAt: now}})
			if plan.Replicas != tc.want {
				t.Errorf("got %d replicas, want %d", plan.Replicas, tc.want)
			}
		})
	}
}

// While a pool is not settled, its replicas are not lowered and none of its Machines is deleted. Replicas that
// were lowered before are not raised again, and a new claim gets its Machine.
func TestPoolSettles(t *testing.T) {
	marked := Machine{Name: "marked", Leaving: true, HasNode: true, Marked: true, Hooked: true, LeavingSince: start}
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
			plan := decide(State{Replicas: tc.replicas, Claims: claims, Machines: []Machine{live, marked}, Scaling: Pool{SettlesAt: lo.Ternary(tc.unsettled, now.Add(time.Second), now)}})
			if plan.Replicas != tc.want || !slices.Equal(plan.Deletable, tc.letGo) {
				t.Errorf("got %d replicas, and %v deletable; want %d and %v", plan.Replicas, plan.Deletable, tc.want, tc.letGo)
			}
		})
	}
}

// Lower replicas of a blocked MachineSet stay on their way, whatever claims wait, if it deletes only Machines
// because of them that nothing needs.
func TestLowerNumberStaysOnItsWay(t *testing.T) {
	for name, machine := range map[string]Machine{
		"a Machine that serves a claim has its Node": in("served"),
		"one that serves a claim leaves":             machine("served", 0).serves("served").leaving(),
		"one that serves no claim":                   machine("spare", 0),
	} {
		t.Run(name, func(t *testing.T) {
			plan := decide(State{
				Replicas: 1, Machines: []Machine{machine}, Scaling: MachineSet{Replicas: 2, LoweredAt: now},
				Claims: []Claim{{UID: "served", Name: "served"}, claim("a", 0), claim("b", 0), claim("c", 0)},
			})
			if plan.Replicas != 1 || plan.Reasons["replicas"] != LoweringInProgress || len(plan.Links) > 0 {
				t.Errorf("got %d replicas, because %q, and links %v; want 1, and that lower replicas are on their way", plan.Replicas, plan.Reasons["replicas"], plan.Links)
			}
		})
	}
}

// A blocked MachineSet that lacks Machines gets lower replicas only if it cannot delete a booting one because of them.
func TestBlockedMachineSetIsLowered(t *testing.T) {
	served, spare := machine("served", 0).serves("served"), machine("spare", 0)
	for name, tc := range map[string]struct {
		machines []Machine
		waiting  bool
		replicas int32 // before
		want     int32
	}{
		"nothing boots":                              {machines: []Machine{in("served"), spare.leaving()}, replicas: 4, want: 1},
		"one boots, and as many leave":               {machines: []Machine{served, spare.leaving()}, waiting: true, replicas: 3, want: 2},
		"one boots, and fewer leave":                 {machines: []Machine{served, spare.leaving()}, replicas: 3, want: 3},
		"one boots, and it lacks no Machine":         {machines: []Machine{served, spare.leaving()}, replicas: 2, want: 1},
		"one boots, and it is raised for another":    {machines: []Machine{served}, waiting: true, replicas: 1, want: 2},
		"one boots without a claim, and none leaves": {machines: []Machine{spare}, replicas: 2, want: 2},
		"none boots, and a claim waits":              {machines: []Machine{spare.leaving()}, waiting: true, replicas: 2, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			plan := decide(State{
				Replicas: tc.replicas, Machines: tc.machines, Scaling: MachineSet{Replicas: tc.replicas, Blocked: true},
				Claims: []Claim{{UID: "served", Name: "served"}, {UID: "a", Name: "a", NeedsMachine: tc.waiting}},
			})
			if plan.Replicas != tc.want {
				t.Errorf("got %d replicas, want %d; reasons: %v", plan.Replicas, tc.want, plan.Reasons)
			}
		})
	}
}

// After replicas of a blocked MachineSet were lowered, they count leaving Machines again only to find out whether it is
// still blocked.
func TestLeavingMachinesCountAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		set  MachineSet
		want int32
	}{
		"it creates Machines":        {set: MachineSet{}, want: 4},
		"it is blocked":              {set: MachineSet{Blocked: true}, want: 2},
		"its replicas were lowered":  {set: MachineSet{LoweredAt: now}, want: 2},
		"a probe is due":             {set: MachineSet{LoweredAt: start}, want: 4},
		"the probe finds it blocked": {set: MachineSet{LoweredAt: start, Blocked: true}, want: 2},
		"it is blocked again":        {set: MachineSet{LoweredAt: now, Blocked: true}, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			tc.set.Replicas = 1
			plan := decide(State{
				Replicas: 1, Machines: []Machine{in("a"), in("b").chosen(), in("c").chosen()}, Scaling: tc.set,
				Claims: []Claim{{UID: "a", Name: "a"}, claim("new", 0)},
			})
			if plan.Replicas != tc.want {
				t.Errorf("got %d replicas, want %d", plan.Replicas, tc.want)
			}
		})
	}
}

// Replicas of a pool count the instances that its provider counts.
func TestPoolCounts(t *testing.T) {
	leaving := func(change func(*Machine)) Machine {
		m := Machine{Name: "leaving", Leaving: true, HasNode: true}
		change(&m)
		return m
	}
	marked := leaving(func(m *Machine) { m.Marked, m.Hooked, m.LeavingSince = true, true, start })
	for name, tc := range map[string]struct {
		leaving  []Machine
		scaling  Pool
		unseen   bool  // the provider may not have seen replicas
		waiting  int   // claims
		replicas int32 // before
		want     int32
		why      Reason // for replicas that stay
	}{
		"nothing to do, and nothing is ready":                 {scaling: Pool{Unready: true, SettlesAt: now.Add(time.Second)}, unseen: true, replicas: 1, want: 1},
		"a requested one is missing":                          {replicas: 2, want: 2, why: RequestedNotCreated},
		"a requested one is missing, and its claim waits":     {waiting: 1, replicas: 2, want: 2},
		"a requested one is missing, and another claim waits": {waiting: 2, replicas: 2, want: 3},
		"marked, and the provider may not have seen replicas": {leaving: []Machine{marked}, unseen: true, replicas: 2, want: 2, why: ReplicasNotSeen},
		"marked, and a claim waits for the infrastructure":    {leaving: []Machine{marked}, scaling: Pool{Unready: true}, waiting: 2, replicas: 2, want: 2, why: InfrastructureNotReady},
		"deleted by others, and held by a hook":               {leaving: []Machine{leaving(func(m *Machine) { m.Hooked = true })}, replicas: 2, want: 2},
		"deleted by others, without a hook":                   {leaving: []Machine{leaving(func(*Machine) {})}, replicas: 1, want: 2},
		"marked, without a hook":                              {leaving: []Machine{leaving(func(m *Machine) { m.Marked = true })}, replicas: 1, want: 1},
		"held, and its instance no longer exists":             {leaving: []Machine{leaving(func(m *Machine) { m.Hooked, m.InstanceGone = true, true })}, replicas: 1, want: 1},
		"marked, and the infrastructure is not ready":         {leaving: []Machine{marked}, scaling: Pool{Unready: true}, replicas: 2, want: 1},
		"one of two marks and replicas are not seen, and a claim waits": {
			leaving: []Machine{marked, leaving(func(m *Machine) { m.Name, m.Marked, m.Hooked = "unseen", true, true })}, unseen: true, waiting: 1, replicas: 4, want: 4,
		},
		"the same, before replicas are raised": {
			leaving: []Machine{marked, leaving(func(m *Machine) { m.Name, m.Marked, m.Hooked = "unseen", true, true })}, unseen: true, waiting: 1, replicas: 3, want: 4,
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.scaling.ReplicasSetAt = lo.Ternary(tc.unseen, now, start)
			state := State{Replicas: tc.replicas, Machines: append(tc.leaving, in("live")), Claims: []Claim{{UID: "live", Name: "live"}}, Scaling: tc.scaling}
			for i := range tc.waiting {
				state.Claims = append(state.Claims, claim(fmt.Sprint("waiting-", i), 0))
			}
			if plan := decide(state); plan.Replicas != tc.want || plan.Reasons["replicas"] != tc.why {
				t.Errorf("got %d replicas, because %q; want %d, because %q", plan.Replicas, plan.Reasons["replicas"], tc.want, tc.why)
			}
		})
	}
}

// A marked Machine of a pool whose instance nothing keeps is deletable, whatever the provider has seen: the provider does
// not count it.
func TestPoolLetsGoWhatItCannotKeep(t *testing.T) {
	for name, tc := range map[string]struct {
		machine Machine
		want    []string
	}{
		"its instance is kept":             {machine: Machine{Hooked: true}},
		"it has no hook":                   {machine: Machine{}, want: []string{"m"}},
		"its instance does not exist":      {machine: Machine{Hooked: true, InstanceGone: true}, want: []string{"m"}},
		"it has no hook, and is not there": {machine: Machine{InstanceGone: true}, want: []string{"m"}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.machine.Name = "m"
			plan := decide(State{Replicas: 1, Machines: []Machine{tc.machine.marked()}, Scaling: Pool{ReplicasSetAt: now, SettlesAt: now.Add(time.Second)}})
			if !slices.Equal(plan.Deletable, tc.want) {
				t.Errorf("got %v, want %v; reasons: %v", plan.Deletable, tc.want, plan.Reasons)
			}
		})
	}
}
