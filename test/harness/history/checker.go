// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Rule is an invariant that a violation breaks. The numbers below are those of the invariants in the design.
type Rule string

// The rules.
const (
	// DoubleLink: a Machine serves at most one claim, and no two claims share a provider ID (1 and 4).
	DoubleLink Rule = "double link"
	// LostLink: the link of a Machine that serves a live claim is not removed (1).
	LostLink Rule = "lost link"
	// WrongDelete: a Machine that serves a live claim is not deleted, nor is its instance, unless it has failed (2).
	WrongDelete Rule = "wrong delete"
	// Leak: at the end each Machine has a live claim, and each instance has a Machine (3).
	Leak Rule = "leak"
	// ProviderID: a claim's provider ID is its provisional one, or that of a Machine that was linked to it (4).
	ProviderID Rule = "provider ID"
	// Finalizer: a claim is removed only after its Machine was removed or unlinked (5).
	Finalizer Rule = "finalizer"
)

// Violation is one violation of a rule.
type Violation struct {
	Rule     Rule
	Revision int64
	Seen     time.Time
	// Machine is the name of the affected Machine; empty if there is none.
	Machine string
	Text    string
}

// String implements fmt.Stringer.
func (v Violation) String() string {
	if v.Revision == 0 {
		return fmt.Sprintf("%s: %s", v.Rule, v.Text)
	}
	return fmt.Sprintf("%s: at %s (revision %d) %s", v.Rule, v.Seen.Format(timeFormat), v.Revision, v.Text)
}

const timeFormat = "15:04:05.000"

// Rules configure the checks.
type Rules struct {
	// Failures are the reasons with which infrastructure reports that it has failed, and is not just booting.
	Failures []string

	// LaunchTimeout is how long a Machine can be without a Node before it counts as failed.
	LaunchTimeout time.Duration
}

// Checker replays changes and checks the invariants at each one. It is not for concurrent use.
type Checker struct {
	rules   Rules
	objects map[Kind]map[string]*Object

	// claims are the claims that exist, by UID.
	claims map[types.UID]*Object
	// served are the claims that each Machine was ever linked to, by the Machine's UID.
	served map[types.UID][]types.UID
	// known are the provider IDs that each claim can have, by its UID: those of Machines that were linked to it.
	known map[types.UID][]string
	// launched counts all claims that ever existed.
	launched int
	// machines counts all Machines that ever existed.
	machines int
	// surplus counts those of them that were created while their MachineSet had as many as its replicas, and extra has
	// the names of those, and of replacements, that no replicas count yet and for which no Machine was deleted, by the key of
	// the MachineSet.
	surplus int
	extra   map[string][]string
	// replaced follows those that were created for one that has disappeared as planned.
	replaced replacements

	violations, losses []Violation
}

// NewChecker returns a checker for a history that begins without objects.
func NewChecker(rules Rules) *Checker {
	return &Checker{
		rules:    rules,
		objects:  map[Kind]map[string]*Object{NodeClaim: {}, Machine: {}, MachineSet: {}, MachineDeployment: {}, MachinePool: {}, SimulatedMachine: {}},
		claims:   map[types.UID]*Object{},
		served:   map[types.UID][]types.UID{},
		known:    map[types.UID][]string{},
		extra:    map[string][]string{},
		replaced: replacements{released: map[string]bool{}, counted: map[string]int32{}},
	}
}

// Observe checks the next change, and returns the object before the change; nil if it did not exist.
func (c *Checker) Observe(change Change) (before *Object) {
	before = c.objects[change.Kind][change.Key]
	if change.Object == nil {
		delete(c.objects[change.Kind], change.Key)
	} else {
		c.objects[change.Kind][change.Key] = change.Object
	}
	switch change.Kind {
	case NodeClaim:
		c.observeClaim(change, before)
	case Machine:
		c.observeMachine(change, before)
		c.observeReplaced(change, before)
	case MachineSet:
		c.observeReplicas(change, before)
	case SimulatedMachine:
		c.observeInstance(change, before)
	}
	return before
}

// Violations returns the violations so far.
func (c *Checker) Violations() []Violation { return slices.Clone(c.violations) }

// Losses returns the wrong deletions so far that are no violations if Cluster API did them: a Machine without a Node was
// deleted after its MachineSet had created a surplus one, and no other had been deleted for that one (docs/design/deletion.md,
// "Races that remain"). The history does not show who deleted it.
func (c *Checker) Losses() []Violation { return slices.Clone(c.losses) }

// Claims returns how many claims ever existed.
func (c *Checker) Claims() int { return c.launched }

// Requested returns how many Machines ever existed that replicas asked for on purpose. It excludes those that a MachineSet
// created while it had as many as its replicas, because its cache lacked one, and those in the place of a marked Machine that
// replicas did not count before, and counted for a new claim when it disappeared (docs/design/deletion.md, "Races that remain").
func (c *Checker) Requested() int { return c.machines - c.surplus - c.replaced.created }

// UIDs returns the UIDs of all existing objects of a kind.
func (c *Checker) UIDs(kind Kind) []types.UID {
	uids := make([]types.UID, 0, len(c.objects[kind]))
	for _, object := range c.objects[kind] {
		uids = append(uids, object.UID)
	}
	slices.Sort(uids)
	return uids
}

func (c *Checker) violated(change Change, rule Rule, machine string, format string, args ...any) {
	c.violations = append(c.violations, violation(change, rule, machine, format, args...))
}

func violation(change Change, rule Rule, machine string, format string, args ...any) Violation {
	return Violation{Rule: rule, Revision: change.Revision, Seen: change.Seen, Machine: machine, Text: fmt.Sprintf(format, args...)}
}

// linked returns the Machines with a link to a claim, including those that are being deleted, by name.
func (c *Checker) linked(claim types.UID) []*Object {
	var found []*Object
	for _, machine := range c.objects[Machine] {
		if machine.Claim == claim {
			found = append(found, machine)
		}
	}
	slices.SortFunc(found, func(a, b *Object) int { return cmp.Compare(a.Name, b.Name) })
	return found
}

// servedByAnother returns a live Machine other than the given one that is linked to a claim; nil if there is none.
func (c *Checker) servedByAnother(claim types.UID, machine *Object) *Object {
	for _, other := range c.linked(claim) {
		if other.UID != machine.UID && other.Live() {
			return other
		}
	}
	return nil
}

// failed reports whether a Machine has failed: its infrastructure reports a failure or no longer exists, or it has been
// without a Node for too long.
func (c *Checker) failed(key string, machine *Object, at time.Time) bool {
	if slices.Contains(c.rules.Failures, machine.Failed) {
		return true
	}
	// Machine and instance have the same name, whichever of them Cluster API created for the other.
	instance := c.objects[SimulatedMachine][key]
	if instance != nil && slices.Contains(c.rules.Failures, instance.Failed) {
		return true
	}
	if instance == nil && machine.ProviderID == "" && machine.Failed == clusterv1.MachineInfrastructureDoesNotExistReason {
		return true // Cluster API has deleted it, and waits for it forever
	}
	return c.rules.LaunchTimeout > 0 && machine.Node == "" && at.Sub(machine.Created) >= c.rules.LaunchTimeout
}
