// SPDX-License-Identifier: Apache-2.0

package history

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

var (
	start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	rules = Rules{Failures: []string{"NoCapacity"}, LaunchTimeout: time.Minute}
)

// The steps of a history. Each changes an existing object, or creates a new one.
type step func(objects map[Kind]map[string]*Object) Change

func change(kind Kind, name string, set func(*Object)) step {
	return func(objects map[Kind]map[string]*Object) Change {
		object := Object{Name: name, UID: types.UID("uid-" + name), Created: start}
		if known := objects[kind][name]; known != nil {
			object = *known
		}
		set(&object)
		return Change{Kind: kind, Key: name, Object: &object}
	}
}

func gone(kind Kind, name string) step {
	return func(map[Kind]map[string]*Object) Change { return Change{Kind: kind, Key: name} }
}

// claim creates a claim that is launched and has its provisional provider ID.
func claim(name string) step {
	return change(NodeClaim, name, func(o *Object) { o.ProviderID = "nodeclaim://uid-" + name })
}

func providerID(kind Kind, name, id string) step {
	return change(kind, name, func(o *Object) { o.ProviderID = id })
}

func deleted(kind Kind, name string) step {
	return change(kind, name, func(o *Object) { o.Deleted = start })
}

func chosen(name string) step { return change(Machine, name, func(o *Object) { o.Chosen = true }) }

func machine(name string) step { return change(Machine, name, func(*Object) {}) }

func linkTo(machine, claim string) step {
	return change(Machine, machine, func(o *Object) {
		o.Claim, o.ClaimName = "", ""
		if claim != "" {
			o.Claim, o.ClaimName = types.UID("uid-"+claim), claim
		}
	})
}

// replay lets a checker observe steps, one second apart.
func replay(steps []step) *Checker {
	checker := NewChecker(rules)
	for i, step := range steps {
		change := step(checker.objects)
		change.Revision, change.Seen = int64(i+1), start.Add(time.Duration(i)*time.Second)
		checker.Observe(change)
	}
	return checker
}

func broken(violations []Violation) []Rule {
	var rules []Rule
	for _, violation := range violations {
		rules = append(rules, violation.Rule)
	}
	return rules
}

func TestObserve(t *testing.T) {
	for name, tc := range map[string]struct {
		steps []step
		want  []Rule
	}{
		"a claim's whole life": {steps: []step{
			claim("a"), machine("m"), linkTo("m", "a"), providerID(Machine, "m", "real://m"), providerID(NodeClaim, "a", "real://m"),
			deleted(NodeClaim, "a"), deleted(Machine, "m"), gone(Machine, "m"), gone(NodeClaim, "a"),
		}},
		"a Machine is unlinked and serves the next claim": {steps: []step{
			claim("a"), machine("m"), linkTo("m", "a"), deleted(NodeClaim, "a"), linkTo("m", ""), gone(NodeClaim, "a"), claim("b"), linkTo("m", "b"),
		}},
		"a Machine is linked to another claim while the first is alive": {
			steps: []step{claim("a"), claim("b"), machine("m"), linkTo("m", "a"), linkTo("m", "b")},
			want:  []Rule{DoubleLink},
		},
		"the same, in one write": {
			steps: []step{claim("a"), claim("b"), machine("m"), linkTo("m", "a"), linkTo("m", ""), linkTo("m", "b")},
			want:  []Rule{LostLink, DoubleLink},
		},
		"a second Machine of a claim is linked to another claim": {steps: []step{
			claim("a"), claim("b"), machine("m"), machine("n"), linkTo("m", "a"), linkTo("n", "a"), linkTo("n", ""), linkTo("n", "b"),
		}},
		"a second Machine of a claim is deleted": {steps: []step{
			claim("a"), machine("m"), machine("n"), linkTo("m", "a"), linkTo("n", "a"), deleted(Machine, "n"),
		}},
		"the Machine that a claim knows is deleted, and a second one stays": {
			steps: []step{
				claim("a"), machine("m"), machine("n"), linkTo("m", "a"), linkTo("n", "a"),
				providerID(Machine, "n", "real://n"), providerID(NodeClaim, "a", "real://n"), deleted(Machine, "n"),
			},
			want: []Rule{WrongDelete},
		},
		"a Machine that serves a claim is deleted": {
			steps: []step{claim("a"), machine("m"), linkTo("m", "a"), deleted(Machine, "m")},
			want:  []Rule{WrongDelete},
		},
		"a Machine that serves a claim is marked, and then deleted": {
			steps: []step{claim("a"), machine("m"), linkTo("m", "a"), chosen("m"), deleted(Machine, "m")},
			want:  []Rule{WrongDelete},
		},
		"a Machine without an instance, which Cluster API waits for, is marked": {steps: []step{
			claim("a"), machine("m"), linkTo("m", "a"), change(Machine, "m", func(o *Object) { o.Failed = "ObjectDoesNotExist" }), chosen("m"),
		}},
		"the same, and the instance exists": {
			steps: []step{
				claim("a"), machine("m"), linkTo("m", "a"), change(SimulatedMachine, "m", func(*Object) {}),
				change(Machine, "m", func(o *Object) { o.Failed = "ObjectDoesNotExist" }), chosen("m"),
			},
			want: []Rule{WrongDelete},
		},
		"a Machine that is being deleted is linked": {
			steps: []step{claim("a"), machine("m"), chosen("m"), linkTo("m", "a")},
			want:  []Rule{WrongDelete},
		},
		"a second Machine replaces one that is being deleted": {
			steps: []step{claim("a"), machine("m"), machine("n"), linkTo("m", "a"), linkTo("n", "a"), chosen("m"), chosen("n")},
			want:  []Rule{WrongDelete},
		},
		"a Machine that serves a claim disappears in one write": {
			steps: []step{claim("a"), machine("m"), linkTo("m", "a"), gone(Machine, "m")},
			want:  []Rule{WrongDelete},
		},
		"an instance is deleted after its Machine": {steps: []step{
			claim("a"), machine("m"), linkTo("m", "a"), change(SimulatedMachine, "m", func(*Object) {}), deleted(NodeClaim, "a"),
			chosen("m"), deleted(Machine, "m"), deleted(SimulatedMachine, "m"), gone(SimulatedMachine, "m"),
		}},
		"the instance of a Machine that serves a claim is deleted": {
			steps: []step{claim("a"), machine("m"), linkTo("m", "a"), change(SimulatedMachine, "m", func(*Object) {}), deleted(SimulatedMachine, "m"), gone(SimulatedMachine, "m")},
			want:  []Rule{WrongDelete},
		},
		"the instance of a spare Machine is deleted": {steps: []step{
			claim("a"), machine("m"), change(SimulatedMachine, "m", func(*Object) {}), deleted(SimulatedMachine, "m"),
		}},
		"a Machine that lost its link is deleted": {
			steps: []step{
				claim("a"), machine("m"), linkTo("m", "a"), providerID(Machine, "m", "real://m"), providerID(NodeClaim, "a", "real://m"),
				linkTo("m", ""), deleted(Machine, "m"),
			},
			want: []Rule{LostLink, WrongDelete},
		},
		"a spare Machine is deleted": {steps: []step{claim("a"), machine("m"), deleted(Machine, "m")}},
		"a Machine whose instance failed is deleted": {steps: []step{
			claim("a"), machine("m"), linkTo("m", "a"), change(SimulatedMachine, "m", func(o *Object) { o.Failed = "NoCapacity" }), deleted(Machine, "m"),
		}},
		"a Machine that has failed is deleted": {steps: []step{
			claim("a"), machine("m"), linkTo("m", "a"), change(Machine, "m", func(o *Object) { o.Failed = "NoCapacity" }), deleted(Machine, "m"),
		}},
		"a Machine that boots is deleted": {
			steps: []step{claim("a"), machine("m"), linkTo("m", "a"), change(Machine, "m", func(o *Object) { o.Failed = "Booting" }), deleted(Machine, "m")},
			want:  []Rule{WrongDelete},
		},
		"a Machine that boots for too long is deleted": {steps: []step{
			claim("a"), change(Machine, "m", func(o *Object) { o.Created = start.Add(-time.Minute) }), linkTo("m", "a"), deleted(Machine, "m"),
		}},
		"an old Machine with a Node is deleted": {
			steps: []step{
				claim("a"), change(Machine, "m", func(o *Object) { o.Created, o.Node = start.Add(-time.Minute), "m" }), linkTo("m", "a"), deleted(Machine, "m"),
			},
			want: []Rule{WrongDelete},
		},
		"the provisional provider ID is set again": {steps: []step{
			claim("a"), machine("m"), linkTo("m", "a"), providerID(Machine, "m", "real://m"), providerID(NodeClaim, "a", "real://m"), claim("a"), providerID(NodeClaim, "a", "real://m"),
		}},
		"another claim's provisional provider ID": {
			steps: []step{claim("a"), providerID(NodeClaim, "b", "nodeclaim://uid-a")},
			want:  []Rule{ProviderID, DoubleLink},
		},
		"the provider ID of a Machine that was never linked": {
			steps: []step{claim("a"), machine("m"), providerID(Machine, "m", "real://m"), providerID(NodeClaim, "a", "real://m")},
			want:  []Rule{ProviderID},
		},
		"the provider ID of a Machine that was unlinked in the meantime": {steps: []step{
			claim("a"), machine("m"), linkTo("m", "a"), providerID(Machine, "m", "real://m"), deleted(NodeClaim, "a"), linkTo("m", ""), providerID(NodeClaim, "a", "real://m"),
		}},
		"a claim is removed before its Machine": {
			steps: []step{claim("a"), machine("m"), linkTo("m", "a"), deleted(NodeClaim, "a"), deleted(Machine, "m"), gone(NodeClaim, "a")},
			want:  []Rule{Finalizer},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, broken(replay(tc.steps).Violations())); diff != "" {
				t.Errorf("broken rules (-want +got):\n%s", diff)
			}
		})
	}
}

// set creates the MachineSet s, or changes its replicas.
func set(replicas int32) step {
	return change(MachineSet, "s", func(o *Object) { o.Replicas = replicas })
}

// of creates a Machine of a MachineSet.
func of(set, name string) step { return change(Machine, name, func(o *Object) { o.Set = set }) }

func TestSurplus(t *testing.T) {
	for name, tc := range map[string]struct {
		steps []step
		want  int
	}{
		"as many as replicas":                {steps: []step{set(2), of("s", "a"), of("s", "b")}},
		"one more":                           {steps: []step{set(1), of("s", "a"), of("s", "b")}, want: 1},
		"one more, and then it has changed":  {steps: []step{set(1), of("s", "a"), of("s", "b"), linkTo("b", "c")}, want: 1},
		"one more, which then replicas want": {steps: []step{set(1), of("s", "a"), of("s", "b"), set(2)}, want: 1},
		"in the place of one that has ended": {steps: []step{set(1), of("s", "a"), gone(Machine, "a"), of("s", "b")}},
		"replicas are raised, then lowered":  {steps: []step{set(2), of("s", "a"), of("s", "b"), set(1)}},
		"of different MachineSets":           {steps: []step{set(1), of("s", "a"), of("other", "b")}},
		"of no MachineSet":                   {steps: []step{set(1), of("s", "a"), machine("b")}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := replay(tc.steps).surplus; got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestReplaced(t *testing.T) {
	// A MachineSet has two Machines. One is marked, and replicas do not count it.
	marked := []step{set(2), of("s", "a"), of("s", "b"), chosen("b"), set(1)}
	for name, tc := range map[string]struct {
		steps []step
		want  int
	}{
		"it disappears after a claim was added":                      {steps: []step{set(3), deleted(Machine, "b"), gone(Machine, "b"), of("s", "c"), of("s", "d")}, want: 1},
		"it disappears later":                                        {steps: []step{set(3), of("s", "c"), gone(Machine, "b"), of("s", "d")}, want: 1},
		"it disappears, and replicas are lowered":                    {steps: []step{set(3), of("s", "c"), gone(Machine, "b"), set(2)}},
		"it disappears, replicas are lowered, then raised":           {steps: []step{set(3), of("s", "c"), gone(Machine, "b"), set(2), set(3), of("s", "d")}},
		"it disappears before a claim is added":                      {steps: []step{gone(Machine, "b"), set(2), of("s", "c")}},
		"it stays":                                                   {steps: []step{set(3), of("s", "c"), set(4), of("s", "d")}},
		"it disappears, and another Machine disappears with no mark": {steps: []step{set(3), gone(Machine, "b"), gone(Machine, "a"), of("s", "c"), of("s", "d"), of("s", "e")}, want: 1},
		"a Machine of another MachineSet is created":                 {steps: []step{set(3), of("s", "c"), gone(Machine, "b"), of("other", "d")}},
		"the MachineSet is removed and created again":                {steps: []step{set(3), of("s", "c"), gone(Machine, "b"), gone(MachineSet, "s"), set(3), of("s", "d")}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := replay(append(slices.Clone(marked), tc.steps...)).replaced.created; got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
	t.Run("one that replicas always counted disappears", func(t *testing.T) {
		if got := replay([]step{set(2), of("s", "a"), of("s", "b"), chosen("b"), gone(Machine, "b"), of("s", "c")}).replaced.created; got != 0 {
			t.Errorf("got %d, want 0", got)
		}
	})
}

// expectLosses expects how many losses a history has, and which rules it breaks.
func expectLosses(t *testing.T, checker *Checker, losses int, rules []Rule) {
	t.Helper()
	if got := len(checker.Losses()); got != losses {
		t.Errorf("%d losses, want %d", got, losses)
	}
	if diff := cmp.Diff(rules, broken(checker.Violations())); diff != "" {
		t.Errorf("broken rules (-want +got):\n%s", diff)
	}
}

func TestLosses(t *testing.T) {
	// Two claims have their Machines, and the MachineSet has created a third one that no replicas asked for.
	surplus := []step{claim("a"), claim("b"), set(2), of("s", "m"), linkTo("m", "a"), of("s", "n"), linkTo("n", "b"), of("s", "o")}
	for name, tc := range map[string]struct {
		steps  []step
		losses int
		broken []Rule
	}{
		"another is deleted":                      {steps: []step{deleted(Machine, "m")}, losses: 1},
		"another is deleted after a raise":        {steps: []step{set(3), deleted(Machine, "m")}, losses: 1},
		"two others are deleted":                  {steps: []step{deleted(Machine, "m"), deleted(Machine, "n")}, losses: 1, broken: []Rule{WrongDelete}},
		"the surplus one is deleted":              {steps: []step{deleted(Machine, "o")}},
		"the surplus one and another are deleted": {steps: []step{deleted(Machine, "o"), deleted(Machine, "m")}, broken: []Rule{WrongDelete}},
		"the surplus one is marked, and another deleted": {
			steps: []step{chosen("o"), deleted(Machine, "m")}, losses: 1,
		},
		"the surplus one is marked and deleted, and then another": {
			steps: []step{chosen("o"), deleted(Machine, "o"), deleted(Machine, "m")}, broken: []Rule{WrongDelete},
		},
		"the surplus one is marked, and two others deleted": {
			steps: []step{chosen("o"), deleted(Machine, "m"), deleted(Machine, "n")}, losses: 1, broken: []Rule{WrongDelete},
		},
		"one of a claim that ends is deleted, and then another": {
			steps: []step{deleted(NodeClaim, "a"), deleted(Machine, "m"), deleted(Machine, "n")}, broken: []Rule{WrongDelete},
		},
		"one that ends is marked, and another deleted": {steps: []step{deleted(NodeClaim, "a"), chosen("m"), deleted(Machine, "n")}, losses: 1},
		"another is deleted after one more was created for more replicas": {
			steps: []step{set(4), of("s", "p"), deleted(Machine, "m")}, broken: []Rule{WrongDelete},
		},
		"another is deleted after one more was created twice": {
			steps: []step{set(4), of("s", "p"), of("s", "q"), deleted(Machine, "m"), deleted(Machine, "n")}, losses: 1, broken: []Rule{WrongDelete},
		},
		"another is marked": {steps: []step{chosen("m")}, broken: []Rule{WrongDelete}},
		"one with a Node is deleted": {
			steps: []step{change(Machine, "m", func(o *Object) { o.Node = "m" }), deleted(Machine, "m")}, broken: []Rule{WrongDelete},
		},
		"the instance of another is deleted": {
			steps: []step{change(SimulatedMachine, "m", func(*Object) {}), deleted(SimulatedMachine, "m")}, broken: []Rule{WrongDelete},
		},
		"one of another MachineSet is deleted": {
			steps: []step{claim("c"), of("other", "p"), linkTo("p", "c"), deleted(Machine, "p")}, broken: []Rule{WrongDelete},
		},
	} {
		t.Run(name, func(t *testing.T) {
			expectLosses(t, replay(append(slices.Clone(surplus), tc.steps...)), tc.losses, tc.broken)
		})
	}
}

func TestLossesToReplacements(t *testing.T) {
	// A Machine is marked, and replicas do not count it. For a new claim they do, and it disappears just when they are lowered
	// again, so that the MachineSet has created two Machines for one claim.
	replaced := []step{
		set(1), of("s", "old"), chosen("old"), set(0), claim("a"), set(2), of("s", "m"), linkTo("m", "a"), gone(Machine, "old"), of("s", "n"), set(1),
	}
	for name, tc := range map[string]struct {
		steps  []step
		losses int
		broken []Rule
	}{
		"the Machine of the claim is deleted": {steps: []step{deleted(Machine, "m")}, losses: 1},
		"the surplus one is deleted":          {steps: []step{deleted(Machine, "n")}},
		"both are deleted":                    {steps: []step{deleted(Machine, "n"), deleted(Machine, "m")}, broken: []Rule{WrongDelete}},
		"a claim gets the surplus one":        {steps: []step{claim("b"), linkTo("n", "b"), set(3), of("s", "o"), deleted(Machine, "m")}, broken: []Rule{WrongDelete}},
	} {
		t.Run(name, func(t *testing.T) {
			expectLosses(t, replay(append(slices.Clone(replaced), tc.steps...)), tc.losses, tc.broken)
		})
	}
}

func TestEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		steps []step
		want  []Rule
	}{
		"nothing is left":                        {steps: []step{claim("a"), machine("m"), linkTo("m", "a"), change(SimulatedMachine, "m", func(*Object) {})}},
		"a Machine without a claim":              {steps: []step{machine("m")}, want: []Rule{Leak}},
		"a Machine whose claim no longer exists": {steps: []step{machine("m"), linkTo("m", "a")}, want: []Rule{Leak}},
		"a Machine whose claim is being deleted": {steps: []step{claim("a"), machine("m"), linkTo("m", "a"), deleted(NodeClaim, "a")}, want: []Rule{Leak}},
		"an instance without a Machine":          {steps: []step{change(SimulatedMachine, "m", func(*Object) {})}, want: []Rule{Leak}},
		"two Machines of one claim":              {steps: []step{claim("a"), machine("m"), machine("n"), linkTo("m", "a"), linkTo("n", "a")}, want: []Rule{DoubleLink}},
		"the second one is being deleted":        {steps: []step{claim("a"), machine("m"), machine("n"), linkTo("m", "a"), linkTo("n", "a"), deleted(Machine, "n")}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, broken(replay(tc.steps).End())); diff != "" {
				t.Errorf("broken rules (-want +got):\n%s", diff)
			}
		})
	}
}
