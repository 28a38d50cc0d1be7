// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-capi/karpenter-capi/internal/failure"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// now is the time of all states. Whatever a test does not set has just happened.
var now = start.Add(24 * time.Hour)

// hasFailed is the failure of a Machine that serves no claim.
var hasFailed = failure.Failure{Kind: failure.MachineFailed, Message: "it is broken"}

// decide returns the plan for a state.
func decide(state State) Plan { return Decide(complete(state)) }

// complete sets what the tests do not set.
func complete(state State) *State {
	state.Now, state.Exists = now, true
	state.Durations = Durations{LaunchTimeout: time.Hour, SpareTTL: time.Hour, NoProgress: time.Minute, Settle: time.Minute, ReadyPoll: time.Second, Probe: time.Minute}
	state.Machines = slices.Clone(state.Machines)
	for i := range state.Machines {
		m := &state.Machines[i]
		m.ResumedAt = now
		for _, at := range []*time.Time{&m.SpareSince, &m.LeavingSince} {
			if at.IsZero() {
				*at = now
			}
		}
	}
	return &state
}

// claim returns a waiting claim that was created the given number of seconds after start.
func claim(name string, second int) Claim {
	return Claim{UID: types.UID(name), Name: name, Created: start.Add(time.Duration(second) * time.Second), ProviderID: "provisional://" + name, NeedsMachine: true}
}

func (c Claim) gone() Claim                { c.NeedsMachine, c.Leaving = false, true; return c }
func (c Claim) registered(id string) Claim { c.NeedsMachine, c.ProviderID = false, id; return c }

// machine returns a live Machine without a link.
func machine(name string, second int) Machine {
	return Machine{Name: name, Created: start.Add(time.Duration(second) * time.Second)}
}

func (m Machine) serves(claim string) Machine { m.Claim = types.UID(claim); return m }
func (m Machine) unfit() bool                 { return m.Failure != failure.Failure{} }
func (m Machine) leaving() Machine            { m.Leaving = true; return m }
func (m Machine) fails() Machine              { m.Failure = hasFailed; return m }
func (m Machine) expired() Machine            { m.SpareSince, m.WasLinked = start, m.HasNode; return m }
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
		"a claim needs a Machine": {
			state:        State{Claims: []Claim{claim("a", 0)}},
			wantReplicas: 1,
		},
		"a hundred claims need Machines": {
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
		"a link is not written twice": {
			state:        State{Replicas: 1, Claims: []Claim{claim("a", 0)}, Machines: []Machine{machine("m", 1).serves("a")}},
			wantReplicas: 1,
		},
		"one of two claims is served": {
			state:        State{Replicas: 1, Claims: []Claim{claim("a", 0), claim("b", 0)}, Machines: []Machine{machine("m", 1).serves("a")}},
			wantReplicas: 2,
		},
		"the next claim gets the Machine of a deleted claim": {
			state:        State{Replicas: 1, Claims: []Claim{claim("b", 5)}, Machines: []Machine{machine("m", 1).serves("a")}},
			wantUnlinks:  []string{"m"}, // and then it is spare
			wantReplicas: 1,
		},
		"the next claim gets an unlinked Machine, expired or not": {
			state:        State{Replicas: 1, Claims: []Claim{claim("b", 5)}, Machines: []Machine{machine("m", 1).expired()}},
			wantLinks:    links{"m": "b"},
			wantReplicas: 1,
		},
		"a failed Machine serves no claim": {
			state:        State{Replicas: 1, Claims: []Claim{claim("b", 5)}, Machines: []Machine{machine("m", 1).fails()}},
			wantMarks:    []string{"m"},
			wantReplicas: 2, // live 1, until the cache shows that it is leaving, + new 1
		},
		"a failed Machine stays as long as its claim": {
			state:        State{Replicas: 1, Claims: []Claim{claim("a", 0)}, Machines: []Machine{machine("m", 1).serves("a").fails()}},
			wantReplicas: 1,
		},
		"a failed Machine whose claim no longer exists is marked": {
			state:        State{Replicas: 1, Machines: []Machine{machine("m", 1).serves("a").fails()}},
			wantMarks:    []string{"m"},
			wantReplicas: 1, // until the cache shows that m is leaving
		},
		"a Node without a claim serves no claim, and is marked after spareTTLSeconds": {
			state:        State{Replicas: 2, Claims: []Claim{claim("b", 5)}, Machines: []Machine{machine("m", 1).node("real://m"), machine("n", 1).node("real://n").expired()}},
			wantSpares:   []string{"m"},
			wantMarks:    []string{"n"},
			wantReplicas: 3, // live 2 + new 1
		},
		"an unlinked Machine is not linked again to its claim, which is being deleted": {
			state: State{Replicas: 1, Claims: []Claim{{UID: "a", Name: "a", ProviderID: "real://m", Leaving: true}},
				Machines: []Machine{{Name: "m", ProviderID: "real://m"}}},
			wantSpares:   []string{"m"},
			wantReplicas: 1,
		},
		"a Machine that was a Node serves no second claim": {
			state:        State{Replicas: 1, Claims: []Claim{claim("b", 5)}, Machines: []Machine{machine("m", 1).serves("a").node("real://m")}},
			wantMarks:    []string{"m"},
			wantReplicas: 2, // live 1, until the cache shows that it is leaving, + new 1
		},
		"a Machine that no claim waits for is spare": {
			state:        State{Replicas: 2, Claims: []Claim{claim("a", 0)}, Machines: []Machine{machine("m", 1).serves("a"), machine("n", 2)}},
			wantSpares:   []string{"n"},
			wantReplicas: 2,
		},
		"a Machine that no claim has waited for is marked": {
			state:        State{Replicas: 2, Claims: []Claim{claim("a", 0)}, Machines: []Machine{machine("m", 1).serves("a"), machine("n", 2).expired()}},
			wantMarks:    []string{"n"},
			wantReplicas: 2, // until the cache shows that n is leaving
		},
		"of two Machines of one claim, the older stays linked": {
			state:        State{Replicas: 2, Claims: []Claim{claim("a", 0)}, Machines: []Machine{machine("n", 2).serves("a"), machine("m", 1).serves("a")}},
			wantUnlinks:  []string{"n"},
			wantReplicas: 2,
		},
		"of two Machines of one claim, the one whose provider ID it has stays linked": {
			state: State{Replicas: 2, Claims: []Claim{claim("a", 0).registered("real://n")},
				Machines: []Machine{machine("n", 2).serves("a").node("real://n"), machine("m", 1).serves("a")}},
			wantUnlinks:  []string{"m"},
			wantReplicas: 2,
		},
		"of two Machines with the provider ID of a claim, the older stays linked": {
			state: State{Replicas: 2, Claims: []Claim{claim("a", 0).registered("real://m")},
				Machines: []Machine{machine("n", 2).serves("a").node("real://m"), machine("m", 1).serves("a").node("real://m")}},
			wantMarks:    []string{"n"},
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
		"a claim that is not launched yet, and has no provider ID, gets no Machine": {
			state:        State{Replicas: 1, Claims: []Claim{{UID: "a", Name: "a"}}, Machines: []Machine{machine("m", 1)}},
			wantSpares:   []string{"m"},
			wantReplicas: 1,
		},
		"a claim that is being deleted gets no Machine": {
			state:        State{Replicas: 1, Claims: []Claim{claim("a", 0).gone()}, Machines: []Machine{machine("m", 1)}},
			wantSpares:   []string{"m"},
			wantReplicas: 1,
		},
		"a registered claim whose Machine no longer exists waits for none": {
			state:        State{Replicas: 1, Claims: []Claim{claim("a", 0).registered("real://m")}},
			wantReplicas: 1, // the MachineSet may be creating one, which is then spare
		},
		"leaving Machines are not replaced": {
			state:        State{Replicas: 5, Claims: []Claim{claim("a", 0)}, Machines: []Machine{machine("m", 1).serves("a"), machine("n", 1).leaving(), machine("o", 1).leaving(), machine("p", 1).leaving(), machine("q", 1).leaving()}},
			wantReplicas: 1,
		},
		"slow terminations do not delay a new claim": {
			state:        State{Replicas: 1, Claims: []Claim{claim("a", 0), claim("b", 9)}, Machines: []Machine{machine("m", 1).serves("a"), machine("n", 1).leaving(), machine("o", 1).leaving()}},
			wantReplicas: 4, // live 1 + new 1 + leaving 2
		},
		"a claim whose Machine was deleted by hand gets another": {
			state:        State{Replicas: 1, Claims: []Claim{claim("a", 0)}, Machines: []Machine{machine("m", 1).serves("a").leaving()}},
			wantReplicas: 2,
		},
		"replicas stay while requested Machines have not appeared": {
			state:        State{Replicas: 3, Claims: []Claim{claim("a", 0)}, Machines: []Machine{machine("m", 1).serves("a")}},
			wantReplicas: 3,
		},
		"replicas stay also when no claim is left": {
			state:        State{Replicas: 3},
			wantReplicas: 3,
		},
		"replicas are lowered when all Machines have appeared and leave": {
			state:        State{Replicas: 1, Machines: []Machine{machine("m", 1).leaving()}},
			wantReplicas: 0,
		},
		"a claim waits while its MachineSet may delete the Machine that it would get": {
			state:        State{Replicas: 1, Claims: []Claim{claim("a", 0)}, Machines: []Machine{machine("m", 1)}, Scaling: MachineSet{Replicas: 2, LoweredAt: now}},
			wantSpares:   []string{"m"},
			wantReplicas: 1,
		},
		"a claim gets the oldest of several spare Machines": {
			state:        State{Replicas: 3, Claims: []Claim{claim("a", 0)}, Machines: []Machine{machine("p", 3), machine("n", 2), machine("m", 1)}},
			wantLinks:    links{"m": "a"},
			wantSpares:   []string{"n", "p"},
			wantReplicas: 3,
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan := decide(tc.state)
			got := links{}
			for _, link := range plan.Links {
				got[link.Machine] = link.Claim.Name
			}
			if diff := cmp.Diff(tc.wantLinks, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("links (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantUnlinks, plan.Unlinks, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("unlinks (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantSpares, plan.Spares, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("spares (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantMarks, plan.Marks, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("marks (-want +got):\n%s", diff)
			}
			if plan.Replicas != tc.wantReplicas {
				t.Errorf("replicas: got %d, want %d", plan.Replicas, tc.wantReplicas)
			}
		})
	}
}

// Of the Machines linked to a claim, the one whose provider ID it has serves it, or else the oldest one that stays.
func TestServedBy(t *testing.T) {
	old, young := machine("old", 1).serves("a"), machine("young", 2).serves("a").node("real://young")
	for name, tc := range map[string]struct {
		providerID string
		linked     []Machine
		want       string // empty for none
	}{
		"none":                                {},
		"the oldest":                          {linked: []Machine{young, old}, want: "old"},
		"the oldest, without a provider ID":   {linked: []Machine{old, young}, want: "old"},
		"the one whose provider ID it has":    {providerID: "real://young", linked: []Machine{old, young}, want: "young"},
		"that one is leaving":                 {providerID: "real://young", linked: []Machine{old, young.leaving()}, want: "old"},
		"the oldest is leaving":               {linked: []Machine{old.leaving(), young}, want: "young"},
		"all are leaving":                     {providerID: "real://young", linked: []Machine{old.leaving(), young.leaving()}},
		"a younger one without a provider ID": {linked: []Machine{young, machine("last", 3).serves("a")}, want: "young"},
	} {
		t.Run(name, func(t *testing.T) {
			got, found := ServedBy(tc.providerID, tc.linked)
			if got.Name != tc.want || found != (tc.want != "") {
				t.Errorf("got %q and %t, want %q", got.Name, found, tc.want)
			}
			plan := decide(State{Claims: []Claim{{UID: "a", Name: "a", ProviderID: tc.providerID}}, Machines: tc.linked})
			if plan.Served["a"] != tc.want {
				t.Errorf("the plan has %q, want %q", plan.Served["a"], tc.want)
			}
		})
	}
}

// A provisional ID is that of one claim, and never that of a Machine.
func TestProvisionalID(t *testing.T) {
	if ProvisionalID("a") == ProvisionalID("b") {
		t.Error("two claims have one ID")
	}
	if uid, ok := ParseProvisionalID(ProvisionalID("a")); !ok || uid != "a" {
		t.Errorf("got the claim %q and %t", uid, ok)
	}
	for _, id := range []string{"", "a", "aws:///us-east-1a/i-1"} {
		if uid, ok := ParseProvisionalID(id); ok {
			t.Errorf("%q is the provisional ID of claim %q", id, uid)
		}
	}
	// Claims of an earlier release have such IDs.
	if got := ProvisionalID("a"); got != "nodeclaim://a" {
		t.Errorf("got %q", got)
	}
}
