// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"cmp"
	"slices"
	"time"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/types"
)

// Claim is what the decision needs to know of a NodeClaim.
type Claim struct {
	// UID and Name identify the claim.
	UID  types.UID
	Name string
	// Created is the claim's creation timestamp.
	Created time.Time
	// ProviderID in the claim's status, provisional or real.
	ProviderID string
	// NeedsMachine tells whether the claim is to be given a Machine if it has none:
	// it is launched, is not being deleted, and no Node has registered for it.
	NeedsMachine bool
	// Leaving tells whether the claim is being deleted.
	Leaving bool
}

// Machine is what the decision needs to know of a Machine.
type Machine struct {
	// Name identifies the Machine.
	Name string
	// Created is the Machine's creation timestamp, in whole seconds.
	Created time.Time
	// Claim is the UID of the claim in the Machine's link; empty without a link.
	Claim types.UID
	// ProviderID of the Machine; empty until the infrastructure has set it.
	ProviderID string
	// Leaving tells whether the Machine is being deleted or was chosen to be.
	Leaving bool
	// HasNode tells whether the Machine has become a Node.
	HasNode bool
	// Unfit tells whether the Machine has failed, or has taken too long to become a
	// Node, so that no claim is to be given it.
	Unfit bool
	// Expired tells whether the Machine has been spare for its grace period.
	Expired bool
	// WasLinked tells whether the Machine has served a claim before.
	WasLinked bool

	// Of a leaving Machine, Chosen tells whether it was chosen to go, Held whether a
	// hook keeps its instance, Settled whether it was chosen so long ago that whoever
	// acts on the replicas must have seen that, and Gone whether its instance is going
	// or gone. A MachineSet takes no notice of these.
	Marked, Hooked, MarkSeen, InstanceGone bool
}

// State is one scalable resource as it was observed.
type State struct {
	// Replicas the resource has now.
	Replicas int32
	// Claims that name this resource, those that are being deleted included.
	Claims []Claim
	// Machines of this resource, those that are being deleted included.
	Machines []Machine
	// Unmanaged is how many Machines the resource has that are not for claims: those it had
	// when it was adopted. A generated resource has none.
	Unmanaged int32
	// UnmanagedUntil is when the youngest Machine was made that the resource had when it was
	// adopted. Those that are not younger are never touched. It is zero for a generated
	// resource.
	UnmanagedUntil time.Time
	// Scaling is how replicas become Machines; nil for a MachineSet.
	Scaling Scaling
}

// Link is the decision that a Machine serves a claim.
type Link struct {
	Machine string
	Claim   Claim
}

// Plan is what to do for one scalable resource.
type Plan struct {
	// Links are to be written, in order, on Machines that have none.
	Links []Link
	// Unlinks are Machines whose link is to be removed, so that they are spare:
	// their claim is gone or has another Machine.
	Unlinks []string
	// Marks are Machines to delete: they serve no claim, and none can use them.
	Marks []string
	// Spares are Machines without a link that no claim waits for. They are kept for
	// their grace period.
	Spares []string
	// Unmanaged are Machines that are not for claims, and stay as they are.
	Unmanaged []string
	// Replicas the resource is to have.
	Replicas int32
	// Sets are the replicas that each MachineSet should have, of several.
	Sets map[string]int32
	// Deletable are Machines that were chosen, and can be deleted now.
	Deletable []string
	// Reasons are why replicas, Machines and claims stay as they are for now, by name: "replicas",
	// "Machine NAME" or "NodeClaim NAME".
	Reasons map[string]Reason
	// Served maps each claim that has a live Machine, with Links done, to its name.
	Served map[types.UID]string
}

// Decide returns the plan for one scalable resource.
//
// Claims that wait, oldest first, get the spare Machines, oldest first; ties are
// broken by name since timestamps have whole seconds. If several live Machines
// have a link to one claim, the one whose provider ID the claim has keeps it,
// else the oldest.
func Decide(state State) Plan {
	claims, machines := byAge(state)
	scaling := state.Scaling
	if scaling == nil {
		scaling = MachineSet{}
	}
	unmanaged := unmanagedOf(state, claims, machines)
	plan, spare := classify(claims, machines, unmanaged)

	waiting, hold := 0, scaling.lowering(state)
	for _, claim := range claims {
		if !claim.NeedsMachine || plan.Served[claim.UID] != "" {
			continue
		}
		next := slices.IndexFunc(spare, func(machine Machine) bool { return !machine.HasNode })
		if next < 0 {
			waiting++
			plan.because("NodeClaim "+claim.Name, NoSpareMachine)
			continue
		}
		if hold {
			plan.because("NodeClaim "+claim.Name, LoweringInProgress)
			// The claim keeps its place: no Machine is created for it meanwhile.
			plan.Spares = append(plan.Spares, spare[next].Name)
		} else {
			plan.Links = append(plan.Links, Link{Machine: spare[next].Name, Claim: claim})
			plan.Served[claim.UID] = spare[next].Name
		}
		spare = slices.Delete(spare, next, next+1)
	}
	// While Machines that were asked for are still to come, a spare one that goes would
	// only be replaced.
	appeared := scaling.appeared(state) && !hold
	for _, machine := range spare {
		switch {
		case machine.Expired && appeared:
			plan.Marks = append(plan.Marks, machine.Name)
		case machine.Expired:
			plan.because("Machine "+machine.Name, lo.Ternary(hold, LoweringInProgress, RequestedNotCreated))
			fallthrough
		default:
			plan.Spares = append(plan.Spares, machine.Name)
		}
	}

	// A Machine to remove counts as live until it is seen to leave: the removal may
	// fail, and replicas must not be lowered before.
	// One that is to be released is as good as spare for a claim that still waits.
	waiting = max(0, waiting-len(plan.Unlinks))
	// Unmanaged Machines that are gone or going come again, as for a claim that waits.
	waiting += max(0, int(state.Unmanaged)-len(unmanaged))
	var why Reason
	plan.Replicas, why = scaling.replicas(state, waiting)
	plan.because("replicas", why)
	if sets, several := scaling.(MachineSets); several {
		plan.Sets = sets.targets(state, waiting)
	}
	for _, machine := range machines {
		if !machine.Marked {
			continue
		}
		if why := scaling.keeps(machine, state, waiting); why != "" {
			plan.because("Machine "+machine.Name, why)
		} else {
			plan.Deletable = append(plan.Deletable, machine.Name)
		}
	}
	plan.Unmanaged = unmanaged
	return plan
}

// because notes why something stays as it is; an empty reason means that it does not.
func (plan *Plan) because(subject string, why Reason) {
	if why == "" {
		return
	}
	if plan.Reasons == nil {
		plan.Reasons = map[string]Reason{}
	}
	plan.Reasons[subject] = why
}

// unmanagedOf returns, of an adopted resource, the Machines that are not for claims: all
// that were there before the adoption and, should these be fewer than there were, the
// oldest of those that have never served a claim. Machines that are leaving do not
// count: others come in their place.
func unmanagedOf(state State, claims []Claim, machines []Machine) []string {
	if state.UnmanagedUntil.IsZero() {
		return nil
	}
	var own, others []string
	serves := func(machine Machine) bool {
		return machine.Claim != "" || machine.WasLinked ||
			machine.ProviderID != "" && slices.ContainsFunc(claims, func(claim Claim) bool { return claim.ProviderID == machine.ProviderID })
	}
	for _, machine := range machines {
		switch {
		case machine.Leaving || serves(machine):
		case !machine.Created.After(state.UnmanagedUntil):
			own = append(own, machine.Name)
		default:
			others = append(others, machine.Name)
		}
	}
	return append(own, others[:min(len(others), max(0, int(state.Unmanaged)-len(own)))]...)
}

// byAge returns the claims and Machines of a state, oldest first.
func byAge(state State) ([]Claim, []Machine) {
	claims, machines := slices.Clone(state.Claims), slices.Clone(state.Machines)
	slices.SortFunc(claims, func(a, b Claim) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(machines, func(a, b Machine) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
	return claims, machines
}

// classify tells, of the live Machines, which serve a claim already, which can
// serve none any more (both in the plan), and which are spare. A Machine with a
// link is never spare: the link is removed first, which takes a look at the API
// server, and a cache that lags behind cannot give it to another claim. Others are
// Machines that are not for claims.
func classify(claims []Claim, machines []Machine, others []string) (plan Plan, spare []Machine) {
	plan.Served = map[types.UID]string{}
	own := plan.keepKnown(claims, machines)
	exists := map[types.UID]bool{}
	for _, claim := range claims {
		exists[claim.UID] = true
	}
	for _, machine := range machines {
		switch {
		case machine.Leaving || own[machine.Name] || slices.Contains(others, machine.Name):
		case exists[machine.Claim] && plan.Served[machine.Claim] == "":
			plan.Served[machine.Claim] = machine.Name
		case machine.Unfit || (machine.HasNode && machine.Claim != ""):
			// It may hold Pods of the claim it served, so no other claim gets it.
			plan.Marks = append(plan.Marks, machine.Name)
		case machine.Claim != "":
			plan.Unlinks = append(plan.Unlinks, machine.Name)
		default:
			spare = append(spare, machine)
		}
	}
	return plan, spare
}

// keepKnown lets each claim keep the Machine that it knows by provider ID, whatever
// older Machine was linked to it by mistake, and also if a user removed the link,
// which is then restored. It returns these Machines. A claim that is being deleted
// gets no link back: its Machine may have been released.
func (plan *Plan) keepKnown(claims []Claim, machines []Machine) map[string]bool {
	byProviderID := map[string]Claim{}
	for _, claim := range claims {
		if claim.ProviderID != "" {
			byProviderID[claim.ProviderID] = claim
		}
	}
	own := map[string]bool{}
	for _, machine := range machines {
		claim, known := byProviderID[machine.ProviderID]
		switch {
		case machine.Leaving || !known || plan.Served[claim.UID] != "":
		case machine.Claim == claim.UID:
			own[machine.Name] = true
			plan.Served[claim.UID] = machine.Name
		case machine.Claim == "" && !claim.Leaving:
			own[machine.Name] = true
			plan.Served[claim.UID] = machine.Name
			plan.Links = append(plan.Links, Link{Machine: machine.Name, Claim: claim})
		}
	}
	return own
}
