// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// in returns a Machine with a Node that serves a claim of the same name.
func in(name string) Machine {
	return Machine{Name: name, Claim: types.UID(name), ProviderID: name, HasNode: true}
}
func (m Machine) chosen() Machine { m.Leaving, m.Marked = true, true; return m }
func (m Machine) held() Machine   { m.Hooked = true; return m }

func TestMachineSets(t *testing.T) {
	old, current := Set{Name: "old", Replicas: 2}, Set{Name: "new", Replicas: 1, Current: true}
	of := map[string]string{"a": "old", "b": "old", "c": "new", "d": "new", "e": "old", "f": "old"}
	with := func(set Set, replicas int32) Set { set.Replicas = replicas; return set }
	behind := func(set Set) Set { set.Behind = true; return set }
	type sets = map[string]int32
	for name, tc := range map[string]struct {
		replicas int32
		sets     []Set
		machines []Machine
		waiting  int
		unseen   bool              // the MachineDeployment controller has not acted on its replicas
		why      map[string]Reason // for replicas and Machines
		want     int32
		wantSets sets
		letGo    []string
	}{
		"nothing to do": {
			replicas: 3, sets: []Set{old, current}, machines: []Machine{in("a"), in("b"), in("c")},
			want: 3, wantSets: sets{"old": 2, "new": 1},
		},
		"marked in the newer one, without a hook yet": {
			replicas: 3, sets: []Set{old, current}, machines: []Machine{in("a"), in("b"), in("c").chosen()},
			want: 3, wantSets: sets{"old": 2, "new": 1},
		},
		"with a hook: the replicas of its MachineSet are lowered first": {
			replicas: 3, sets: []Set{old, current}, machines: []Machine{in("a"), in("b"), in("c").chosen().held()},
			want: 3, wantSets: sets{"old": 2, "new": 0},
		},
		"the MachineSet has not acted on that": {
			replicas: 3, sets: []Set{old, behind(with(current, 0))}, machines: []Machine{in("a"), in("b"), in("c").chosen().held()},
			want: 3, wantSets: sets{"old": 2, "new": 0},
		},
		"the MachineSet has acted on that: replicas are lowered": {
			replicas: 3, sets: []Set{old, with(current, 0)}, machines: []Machine{in("a"), in("b"), in("c").chosen().held()},
			want: 2, wantSets: sets{"old": 2, "new": 0},
		},
		"the MachineSet has acted on that, but the Machine no longer exists: it is replaced": {
			replicas: 3, sets: []Set{old, with(current, 0)}, machines: []Machine{in("a"), in("b")},
			want: 3, wantSets: sets{"old": 2, "new": 0},
		},
		"the MachineDeployment controller has not acted on lower replicas": {
			replicas: 2, sets: []Set{old, with(current, 0)}, machines: []Machine{in("a"), in("b"), in("c").chosen().held()}, unseen: true,
			want: 2, wantSets: sets{"old": 2, "new": 0},
		},
		"the MachineDeployment controller has acted on lower replicas: the Machine is deletable": {
			replicas: 2, sets: []Set{old, with(current, 0)}, machines: []Machine{in("a"), in("b"), in("c").chosen().held()},
			want: 2, wantSets: sets{"old": 2, "new": 0}, letGo: []string{"c"},
		},
		"marked in the older one, while another claim waits": {
			replicas: 3, sets: []Set{old, current}, machines: []Machine{in("a"), in("b").chosen().held(), in("c")}, waiting: 1,
			want: 3, wantSets: sets{"old": 1, "new": 2},
		},
		"marked in the newer one, while another claim waits": {
			replicas: 3, sets: []Set{old, current}, machines: []Machine{in("a"), in("b"), in("c").chosen().held()}, waiting: 1,
			want: 4, wantSets: sets{"old": 2, "new": 2},
		},
		"a Machine of an unknown MachineSet": {
			replicas: 3, sets: []Set{old}, machines: []Machine{in("a"), in("b").chosen().held(), in("c")},
			want: 3, wantSets: sets{"old": 2},
		},
		"the newer one does not exist yet": {
			replicas: 2, sets: []Set{old}, machines: []Machine{in("a"), in("b")}, waiting: 1,
			want: 3, wantSets: sets{"old": 2},
		},
		"the newer one, which is listed first, has the new Machine of a claim": {
			replicas: 3, sets: []Set{current, old}, machines: []Machine{in("a"), in("b"), in("c")}, waiting: 1,
			want: 4, wantSets: sets{"old": 2, "new": 2},
		},
		"a leaving Machine without a hook counts while a claim waits": {
			replicas: 3, sets: []Set{old, current}, machines: []Machine{in("a"), in("b"), in("c").chosen()}, waiting: 1,
			want: 4, wantSets: sets{"old": 2, "new": 2},
		},
		"two claims wait while a requested Machine is missing": {
			replicas: 4, sets: []Set{old, with(current, 2)}, machines: []Machine{in("a"), in("b"), in("c")}, waiting: 2,
			want: 5, wantSets: sets{"old": 2, "new": 3},
		},
		"an older one is never raised": {
			replicas: 3, sets: []Set{with(old, 1), current}, machines: []Machine{in("a"), in("b"), in("c")},
			want: 3, wantSets: sets{"old": 1, "new": 1}, why: map[string]Reason{"replicas": MachineSetBehind},
		},
		"marked in the older one, while a requested Machine is missing in the newer one": {
			replicas: 4, sets: []Set{old, with(current, 2)}, machines: []Machine{in("a"), in("b").chosen().held(), in("c")},
			want: 4, wantSets: sets{"old": 1, "new": 2},
		},
		"replicas are not lowered below those of a MachineSet that is to be lowered, too": {
			replicas: 4, sets: []Set{old, current}, machines: []Machine{in("a"), in("b").chosen().held(), in("c"), in("d").chosen().held()},
			want: 3, wantSets: sets{"old": 1, "new": 1},
		},
		"replicas are not lowered below what a claim waits for": {
			replicas: 4, sets: []Set{with(old, 1), with(current, 0)}, waiting: 1,
			machines: []Machine{in("a"), in("b").chosen().held(), in("e").chosen().held(), in("f").chosen().held()},
			want:     2, wantSets: sets{"old": 1, "new": 1},
		},
		"a MachineSet has not acted on its replicas, and the Machine is kept": {
			replicas: 2, sets: []Set{old, behind(with(current, 0))}, machines: []Machine{in("a"), in("b"), in("c").chosen().held()},
			want: 2, wantSets: sets{"old": 2, "new": 0}, why: map[string]Reason{"Machine c": MachineSetBehind},
		},
		"the cache has lower replicas than Machines of a MachineSet, and the Machine is kept": {
			replicas: 2, sets: []Set{old, with(current, 0)}, machines: []Machine{in("a"), in("b"), in("c").chosen().held(), in("d")},
			want: 3, wantSets: sets{"old": 2, "new": 1}, why: map[string]Reason{"Machine c": MachineSetBehind},
		},
		"the cache lacks the MachineSet of another Machine, and the Machine is kept": {
			replicas: 1, sets: []Set{with(old, 1)}, machines: []Machine{in("a"), in("b").chosen().held(), in("c")},
			want: 1, wantSets: sets{"old": 1}, why: map[string]Reason{"Machine b": MachineSetBehind},
		},
		"its MachineSet counts the Machine": {
			replicas: 3, sets: []Set{old, current}, machines: []Machine{in("a"), in("b"), in("c").chosen().held()},
			want: 3, wantSets: sets{"old": 2, "new": 0}, why: map[string]Reason{"Machine c": StillCounted, "replicas": StillCounted},
		},
		"the MachineDeployment counts the Machine, and a MachineSet is behind": {
			replicas: 3, sets: []Set{behind(old), with(current, 0)}, machines: []Machine{in("a"), in("b"), in("c").chosen().held()},
			want: 3, wantSets: sets{"old": 2, "new": 0}, why: map[string]Reason{"Machine c": MachineSetBehind, "replicas": MachineSetBehind},
		},
		"a requested Machine is missing: replicas stay": {
			replicas: 4, sets: []Set{old, with(current, 0)}, machines: []Machine{in("a"), in("b"), in("c").chosen().held()},
			want: 4, wantSets: sets{"old": 2, "new": 0}, why: map[string]Reason{"Machine c": StillCounted, "replicas": RequestedNotCreated},
		},
		"a user has lowered replicas": {
			replicas: 1, sets: []Set{old, current}, machines: []Machine{in("a"), in("b"), in("c")},
			want: 3, wantSets: sets{"old": 2, "new": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			state := State{Replicas: tc.replicas, Scaling: MachineSets{Sets: tc.sets, Observed: !tc.unseen}}
			for _, machine := range tc.machines {
				state.Machines = append(state.Machines, machine.of(of[machine.Name]))
				if !machine.Leaving {
					state.Claims = append(state.Claims, Claim{UID: machine.Claim, Name: machine.Name, ProviderID: machine.ProviderID})
				}
			}
			for i := range tc.waiting {
				state.Claims = append(state.Claims, claim(fmt.Sprint("waiting-", i), 0))
			}
			plan := decide(state)
			if plan.Replicas != tc.want {
				t.Errorf("replicas: got %d, want %d", plan.Replicas, tc.want)
			}
			if diff := cmp.Diff(tc.wantSets, plan.Sets); diff != "" {
				t.Errorf("MachineSets (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.letGo, plan.Deletable); diff != "" {
				t.Errorf("deletable (-want +got):\n%s", diff)
			}
			if tc.why != nil {
				if diff := cmp.Diff(tc.why, plan.Reasons); diff != "" {
					t.Errorf("reasons (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// An expired spare Machine stays until all requested Machines have appeared: if it were removed before, it would
// be replaced.
func TestExpiredMachineOfMachineSets(t *testing.T) {
	for name, tc := range map[string]struct {
		replicas int32
		marks    []string
	}{
		"all have appeared":          {replicas: 2, marks: []string{"spare"}},
		"a requested one is missing": {replicas: 3},
	} {
		t.Run(name, func(t *testing.T) {
			scaling := MachineSets{
				Sets:     []Set{{Name: "old", Replicas: 1}, {Name: "new", Replicas: tc.replicas - 1, Current: true}},
				Observed: true,
			}
			plan := decide(State{
				Replicas: tc.replicas, Scaling: scaling, Machines: []Machine{in("a").of("old"), machine("spare", 0).expired().of("new")},
				Claims: []Claim{{UID: "a", Name: "a", ProviderID: "a"}},
			})
			if diff := cmp.Diff(tc.marks, plan.Marks); diff != "" {
				t.Errorf("marked (-want +got):\n%s", diff)
			}
		})
	}
}
