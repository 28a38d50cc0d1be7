// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"testing/quick"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// claim is a claim that waits, created the given number of seconds after start.
func claim(name string, second int) Claim {
	return Claim{UID: types.UID(name), Name: name, Created: start.Add(time.Duration(second) * time.Second), ProviderID: "provisional://" + name, NeedsMachine: true}
}

func (c Claim) gone() Claim                { c.NeedsMachine, c.Leaving = false, true; return c }
func (c Claim) registered(id string) Claim { c.NeedsMachine, c.ProviderID = false, id; return c }

// machine is a live Machine without a link.
func machine(name string, second int) Machine {
	return Machine{Name: name, Created: start.Add(time.Duration(second) * time.Second)}
}

func (m Machine) serves(claim string) Machine { m.Claim = types.UID(claim); return m }
func (m Machine) leaving() Machine            { m.Leaving = true; return m }
func (m Machine) unfit() Machine              { m.Unfit = true; return m }
func (m Machine) expired() Machine            { m.Expired = true; return m }
func (m Machine) node(id string) Machine      { m.HasNode, m.ProviderID = true, id; return m }

func TestDecide(t *testing.T) {
	type links map[string]string // Machine to claim
	for name, tc := range map[string]struct {
		state        State
		wantLinks    links
		wantUnlinks  []string
		wantSpares   []string
		wantMarks    []string
		wantReplicas int32
	}{
		"nothing": {},
		"a claim asks for its Machine": {
			state:        State{Claims: []Claim{claim("a", 0)}},
			wantReplicas: 1,
		},
		"a hundred claims ask at once": {
			state: State{Claims: func() (claims []Claim) {
				for i := range 100 {
					claims = append(claims, claim(fmt.Sprint(i), 0))
				}
				return claims
			}()},
			wantReplicas: 100,
		},
		"the oldest claim gets the oldest Machine": {
			state: State{Replicas: 2,
				Claims:   []Claim{claim("young", 9), claim("old", 1)},
				Machines: []Machine{machine("m-second", 20), machine("m-first", 10)}},
			wantLinks:    links{"m-first": "old", "m-second": "young"},
			wantReplicas: 2,
		},
		"within one second the name decides": {
			state: State{Replicas: 2,
				Claims:   []Claim{claim("b", 1), claim("a", 1)},
				Machines: []Machine{machine("n", 10), machine("m", 10)}},
			wantLinks:    links{"m": "a", "n": "b"},
			wantReplicas: 2,
		},
		"a link is not made twice": {
			state:        State{Replicas: 1, Claims: []Claim{claim("a", 0)}, Machines: []Machine{machine("m", 1).serves("a")}},
			wantReplicas: 1,
		},
		"one of two claims is served": {
			state:        State{Replicas: 1, Claims: []Claim{claim("a", 0), claim("b", 0)}, Machines: []Machine{machine("m", 1).serves("a")}},
			wantReplicas: 2,
		},
		"a deleted claim's place goes to the next": {
			state:        State{Replicas: 1, Claims: []Claim{claim("b", 5)}, Machines: []Machine{machine("m", 1).serves("a")}},
			wantUnlinks:  []string{"m"}, // and then it is spare
			wantReplicas: 1,
		},
		"a released Machine goes to the next, expired or not": {
			state:        State{Replicas: 1, Claims: []Claim{claim("b", 5)}, Machines: []Machine{machine("m", 1).expired()}},
			wantLinks:    links{"m": "b"},
			wantReplicas: 1,
		},
		"a Machine that has failed is given to nobody": {
			state:        State{Replicas: 1, Claims: []Claim{claim("b", 5)}, Machines: []Machine{machine("m", 1).unfit()}},
			wantMarks:    []string{"m"},
			wantReplicas: 2, // live 1, until it is seen to leave, + new 1
		},
		"a Machine that has failed stays as long as its claim does": {
			state:        State{Replicas: 1, Claims: []Claim{claim("a", 0)}, Machines: []Machine{machine("m", 1).serves("a").unfit()}},
			wantReplicas: 1,
		},
		"a Machine that has failed and whose claim is gone goes": {
			state:        State{Replicas: 1, Machines: []Machine{machine("m", 1).serves("a").unfit()}},
			wantMarks:    []string{"m"},
			wantReplicas: 1, // until m is seen to leave
		},
		"a Node that nobody knows is given to nobody, and goes in the end": {
			state:        State{Replicas: 2, Claims: []Claim{claim("b", 5)}, Machines: []Machine{machine("m", 1).node("real://m"), machine("n", 1).node("real://n").expired()}},
			wantSpares:   []string{"m"},
			wantMarks:    []string{"n"},
			wantReplicas: 3, // live 2 + new 1
		},
		"a Machine that was released by a claim that is going is not linked to it again": {
			state: State{Replicas: 1, Claims: []Claim{{UID: "a", Name: "a", ProviderID: "real://m", Leaving: true}},
				Machines: []Machine{{Name: "m", ProviderID: "real://m"}}},
			wantSpares:   []string{"m"},
			wantReplicas: 1,
		},
		"a Machine that was a Node serves no second claim": {
			state:        State{Replicas: 1, Claims: []Claim{claim("b", 5)}, Machines: []Machine{machine("m", 1).serves("a").node("real://m")}},
			wantMarks:    []string{"m"},
			wantReplicas: 2, // live 1, until it is seen to leave, + new 1
		},
		"a Machine nobody waits for is spare": {
			state:        State{Replicas: 2, Claims: []Claim{claim("a", 0)}, Machines: []Machine{machine("m", 1).serves("a"), machine("n", 2)}},
			wantSpares:   []string{"n"},
			wantReplicas: 2,
		},
		"a Machine nobody has waited for goes": {
			state:        State{Replicas: 2, Claims: []Claim{claim("a", 0)}, Machines: []Machine{machine("m", 1).serves("a"), machine("n", 2).expired()}},
			wantMarks:    []string{"n"},
			wantReplicas: 2, // until n is seen to leave
		},
		"of two Machines for one claim the older stays": {
			state:        State{Replicas: 2, Claims: []Claim{claim("a", 0)}, Machines: []Machine{machine("n", 2).serves("a"), machine("m", 1).serves("a")}},
			wantUnlinks:  []string{"n"},
			wantReplicas: 2,
		},
		"of two Machines for one claim the one it knows stays": {
			state: State{Replicas: 2, Claims: []Claim{claim("a", 0).registered("real://n")},
				Machines: []Machine{machine("n", 2).serves("a").node("real://n"), machine("m", 1).serves("a")}},
			wantUnlinks:  []string{"m"},
			wantReplicas: 2,
		},
		"a link that a user removed is restored": {
			state:        State{Replicas: 1, Claims: []Claim{claim("a", 0).registered("real://m")}, Machines: []Machine{machine("m", 1).node("real://m")}},
			wantLinks:    links{"m": "a"},
			wantReplicas: 1,
		},
		"a claim that is being deleted keeps its Machine until that is deleted": {
			state:        State{Replicas: 1, Claims: []Claim{claim("a", 0).gone()}, Machines: []Machine{machine("m", 1).serves("a")}},
			wantReplicas: 1,
		},
		"a claim that is being deleted gets no Machine": {
			state:        State{Replicas: 1, Claims: []Claim{claim("a", 0).gone()}, Machines: []Machine{machine("m", 1)}},
			wantSpares:   []string{"m"},
			wantReplicas: 1,
		},
		"a registered claim whose Machine is gone waits for none": {
			state:        State{Replicas: 1, Claims: []Claim{claim("a", 0).registered("real://m")}},
			wantReplicas: 1, // the MachineSet may be making one: it comes as a spare
		},
		"a Machine that goes is not replaced": {
			state:        State{Replicas: 5, Claims: []Claim{claim("a", 0)}, Machines: []Machine{machine("m", 1).serves("a"), machine("n", 1).leaving(), machine("o", 1).leaving(), machine("p", 1).leaving(), machine("q", 1).leaving()}},
			wantReplicas: 1,
		},
		"slow terminations hold up no new claim": {
			state:        State{Replicas: 1, Claims: []Claim{claim("a", 0), claim("b", 9)}, Machines: []Machine{machine("m", 1).serves("a"), machine("n", 1).leaving(), machine("o", 1).leaving()}},
			wantReplicas: 4, // live 1 + new 1 + leaving 2
		},
		"a claim whose Machine was deleted by hand gets another": {
			state:        State{Replicas: 1, Claims: []Claim{claim("a", 0)}, Machines: []Machine{machine("m", 1).serves("a").leaving()}},
			wantReplicas: 2,
		},
		"replicas stay while Machines that were asked for may be on their way": {
			state:        State{Replicas: 3, Claims: []Claim{claim("a", 0)}, Machines: []Machine{machine("m", 1).serves("a")}},
			wantReplicas: 3,
		},
		"also when no claim is left, for the next one may be given them": {
			state:        State{Replicas: 3},
			wantReplicas: 3,
		},
		"they are lowered when all have appeared, and left": {
			state:        State{Replicas: 1, Machines: []Machine{machine("m", 1).leaving()}},
			wantReplicas: 0,
		},
		"a young spare goes before an old one": {
			state:        State{Replicas: 3, Claims: []Claim{claim("a", 0)}, Machines: []Machine{machine("p", 3), machine("n", 2), machine("m", 1)}},
			wantLinks:    links{"m": "a"},
			wantSpares:   []string{"n", "p"},
			wantReplicas: 3,
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan := Decide(tc.state)
			got := links{}
			for _, link := range plan.Links {
				got[link.Machine] = link.Claim.Name
			}
			if diff := cmp.Diff(tc.wantLinks, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("links (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantUnlinks, plan.Unlinks, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("releases (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantSpares, plan.Spares, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("spares (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantMarks, plan.Marks, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("removals (-want +got):\n%s", diff)
			}
			if plan.Replicas != tc.wantReplicas {
				t.Errorf("replicas: got %d, want %d", plan.Replicas, tc.wantReplicas)
			}
		})
	}
}

// randomState has links to claims that exist, to claims that are gone, and double ones.
func randomState(random *rand.Rand) State {
	var state State
	for i := range random.Intn(8) {
		c := claim(fmt.Sprintf("c%d", i), random.Intn(4))
		switch random.Intn(4) {
		case 0:
			c = c.gone()
		case 1:
			c = c.registered(fmt.Sprintf("real://m%d", random.Intn(8)))
		}
		state.Claims = append(state.Claims, c)
	}
	for i := range random.Intn(8) {
		m := machine(fmt.Sprintf("m%d", i), random.Intn(4))
		if random.Intn(2) == 0 {
			m = m.serves(fmt.Sprintf("c%d", random.Intn(10)))
		}
		if random.Intn(2) == 0 {
			m.ProviderID = "real://" + m.Name
			m.HasNode = random.Intn(2) == 0
		}
		m.Leaving, m.Unfit, m.Expired = random.Intn(4) == 0, random.Intn(8) == 0, random.Intn(2) == 0
		state.Machines = append(state.Machines, m)
	}
	state.Replicas = int32(random.Intn(12))
	return state
}

// apply does what a plan says, all but what the MachineSet does.
func apply(state State, plan Plan) State {
	next := State{Replicas: plan.Replicas, Claims: state.Claims}
	linked := map[string]types.UID{}
	for _, link := range plan.Links {
		linked[link.Machine] = link.Claim.UID
	}
	for _, m := range state.Machines {
		if uid, ok := linked[m.Name]; ok {
			m.Claim = uid
		}
		m.Leaving = m.Leaving || slices.Contains(plan.Marks, m.Name)
		if slices.Contains(plan.Unlinks, m.Name) {
			m.Claim = ""
		}
		next.Machines = append(next.Machines, m)
	}
	return next
}

func TestProperties(t *testing.T) {
	check := func(seed int64) bool {
		random := rand.New(rand.NewSource(seed))
		state := randomState(random)
		plan := Decide(state)

		machines, claims := map[string]Machine{}, map[types.UID]Claim{}
		live := 0
		for _, m := range state.Machines {
			machines[m.Name] = m
			if !m.Leaving {
				live++
			}
		}
		for _, c := range state.Claims {
			claims[c.UID] = c
		}

		usedBy := map[string]types.UID{}
		for uid, name := range plan.Served {
			if other, twice := usedBy[name]; twice {
				t.Logf("Machine %s serves both %s and %s", name, uid, other)
				return false
			}
			usedBy[name] = uid
			if machines[name].Leaving {
				t.Logf("claim %s is served by %s, which is leaving", uid, name)
				return false
			}
		}
		for _, name := range slices.Concat(plan.Marks, plan.Unlinks, plan.Spares) {
			if uid, serves := usedBy[name]; serves {
				t.Logf("Machine %s is removed, released or spare and serves %s", name, uid)
				return false
			}
		}
		for _, link := range plan.Links {
			if m := machines[link.Machine]; m.Claim != "" || m.Unfit && m.ProviderID != link.Claim.ProviderID {
				t.Logf("Machine %s, which has a link or has failed, is linked", link.Machine)
				return false
			}
		}
		for _, c := range claims {
			if plan.Served[c.UID] == "" && c.NeedsMachine && len(plan.Marks) > 0 {
				for _, name := range plan.Marks {
					if m := machines[name]; !m.HasNode && !m.Unfit {
						t.Logf("Machine %s is removed while %s waits", name, c.Name)
						return false
					}
				}
			}
		}
		// Never so low that a MachineSet would delete a Machine that is to stay.
		if int(plan.Replicas) < live {
			t.Logf("replicas %d, live %d", plan.Replicas, live)
			return false
		}

		// Done a few times, as what is released may then be linked or go, there is
		// nothing to do any more, and replicas stay.
		next := apply(state, plan)
		for range 3 {
			next = apply(next, Decide(next))
		}
		again := Decide(next)
		if len(again.Links)+len(again.Marks)+len(again.Unlinks) != 0 {
			t.Logf("a second time: %+v", again)
			return false
		}
		if third := Decide(apply(next, again)); third.Replicas != again.Replicas {
			t.Logf("replicas a third time: %d, second %d", third.Replicas, again.Replicas)
			return false
		}

		// The order in which a cache lists objects does not matter.
		shuffled := state
		shuffled.Claims, shuffled.Machines = append([]Claim{}, state.Claims...), append([]Machine{}, state.Machines...)
		random.Shuffle(len(shuffled.Claims), func(i, j int) {
			shuffled.Claims[i], shuffled.Claims[j] = shuffled.Claims[j], shuffled.Claims[i]
		})
		random.Shuffle(len(shuffled.Machines), func(i, j int) {
			shuffled.Machines[i], shuffled.Machines[j] = shuffled.Machines[j], shuffled.Machines[i]
		})
		if diff := cmp.Diff(plan, Decide(shuffled)); diff != "" {
			t.Logf("in another order (-first +second):\n%s", diff)
			return false
		}
		return true
	}
	if err := quick.Check(check, &quick.Config{MaxCount: 20000}); err != nil {
		t.Error(err)
	}
}
