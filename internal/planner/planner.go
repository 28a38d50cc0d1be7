// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"cmp"
	"slices"
	"time"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Claim is what the planner needs to know of a NodeClaim.
type Claim struct {
	// UID and Name identify the claim.
	UID  types.UID
	Name string
	// Created is the claim's creation timestamp.
	Created time.Time
	// ProviderID in the claim's status, provisional or real.
	ProviderID string
	// NeedsMachine reports whether the claim should get a Machine if it has none: it is launched,
	// is not being deleted, and no Node has registered for it.
	NeedsMachine bool
	// Leaving reports whether the claim is being deleted.
	Leaving bool
}

// Machine is what the planner needs to know of a Machine.
type Machine struct {
	// Name identifies the Machine.
	Name string
	// Created is the Machine's creation timestamp, in whole seconds.
	Created time.Time
	// Claim is the UID of the claim in the Machine's link; empty without a link.
	Claim types.UID
	// ProviderID of the Machine; empty until the infrastructure has set it.
	ProviderID string
	// Leaving reports whether the Machine is being deleted or marked for deletion.
	Leaving bool
	// HasNode reports whether the Machine has a Node on which Pods may run.
	HasNode bool
	// Ending reports whether the Machine is deleted with its MachineSet or MachineDeployment, so that nothing
	// replaces it.
	Ending bool
	// Unfit reports whether the Machine has failed, or has taken too long to become a Node. It
	// serves no other claim.
	Unfit bool
	// Expired reports whether the Machine has been spare for spareTTLSeconds.
	Expired bool
	// WasLinked reports whether the Machine has served a claim before.
	WasLinked bool

	// Marked reports whether a leaving Machine is marked for deletion, Hooked whether a hook keeps
	// its instance, MarkSeen whether the infrastructure provider must have seen the mark, and
	// InstanceGone whether its instance is being deleted or no longer exists. Only Pool uses the
	// last two.
	Marked, Hooked, MarkSeen, InstanceGone bool
}

// State is one scalable resource with its claims and Machines.
type State struct {
	// Replicas that the resource has now.
	Replicas int32
	// Claims that name this resource, including those that are being deleted.
	Claims []Claim
	// Machines of this resource, including those that are being deleted.
	Machines []Machine
	// Unmanaged is the number of unmanaged Machines, which the resource had when it was adopted and
	// which serve no claims. A generated resource has none.
	Unmanaged int32
	// UnmanagedUntil is the creation time of the youngest Machine that the resource had when it was
	// adopted. The operator never changes Machines that are not younger. It is zero for a generated
	// resource.
	UnmanagedUntil time.Time
	// Scaling is how replicas become Machines; nil is the zero MachineSet.
	Scaling Scaling
}

// Link is the decision that a Machine serves a claim.
type Link struct {
	Machine string
	Claim   Claim
}

// Plan lists the writes for one scalable resource.
type Plan struct {
	// Links are written, in order, on Machines that have none.
	Links []Link
	// Unlinks are Machines whose link is removed, so that they are spare: their claim no longer
	// exists or has another Machine.
	Unlinks []string
	// Marks are Machines that are marked for deletion: they serve no claim, and none can use them.
	Marks []string
	// Spares are Machines without a link that no claim waits for. They stay for spareTTLSeconds.
	Spares []string
	// Unmanaged are Machines that serve no claims, and stay as they are.
	Unmanaged []string
	// Replicas that the resource should have.
	Replicas int32
	// Sets are the replicas that each of several MachineSets should have.
	Sets map[string]int32
	// Deletable are marked Machines that can be deleted now.
	Deletable []string
	// Reasons are why replicas, Machines and claims stay as they are for now, by name: "replicas",
	// "Machine NAME" or "NodeClaim NAME".
	Reasons map[string]Reason
	// Served maps each claim that has a live Machine, including Links, to the name of that Machine.
	Served map[types.UID]string
}

// Decide returns the plan for one scalable resource.
//
// Claims that wait, oldest first, get the spare Machines, oldest first. The name decides between
// equal times, because timestamps have whole seconds. If several live Machines are linked to one
// claim, the one whose provider ID the claim has stays linked, else the oldest.
func Decide(state State) Plan {
	claims, machines := byAge(state)
	scaling := state.Scaling
	if scaling == nil {
		scaling = MachineSet{}
	}
	unmanaged := unmanagedOf(state, claims, machines)
	plan, spare := classify(claims, machines, unmanaged)

	hold := scaling.lowering(state)
	waiting, spare := plan.serve(claims, spare, hold)
	// While requested Machines have not appeared, a spare one that is removed would only be replaced.
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

	// A Machine in Marks counts as live until the cache shows that it is leaving, because the write
	// may fail. One in Unlinks counts as spare for a claim that still waits.
	waiting = max(0, waiting-len(plan.Unlinks))
	// Unmanaged Machines that are being deleted or no longer exist are replaced, as if claims waited.
	waiting += max(0, int(state.Unmanaged)-len(unmanaged))
	var why Reason
	plan.Replicas, why = scaling.replicas(state, waiting)
	plan.because("replicas", why)
	if sets, several := scaling.(MachineSets); several {
		plan.Sets = sets.targets(state, waiting)
	}
	keeps := scaling.keeps(state, waiting)
	for _, machine := range machines {
		if !machine.Marked {
			continue
		}
		if why := keeps(machine); why != "" && !machine.Ending {
			plan.because("Machine "+machine.Name, why)
		} else {
			plan.Deletable = append(plan.Deletable, machine.Name)
		}
	}
	plan.Unmanaged = unmanaged
	return plan
}

// serve links the oldest spare Machines to the claims that wait. It returns how many claims still
// wait, and the spare Machines that are left. With hold, nothing is linked.
func (plan *Plan) serve(claims []Claim, spare []Machine, hold bool) (waiting int, left []Machine) {
	left, usable := lo.FilterReject(spare, func(machine Machine, _ int) bool { return machine.HasNode })
	for _, claim := range claims {
		if !claim.NeedsMachine || plan.Served[claim.UID] != "" {
			continue
		}
		if len(usable) == 0 {
			waiting++
			plan.because("NodeClaim "+claim.Name, NoSpareMachine)
			continue
		}
		if hold {
			plan.because("NodeClaim "+claim.Name, LoweringInProgress)
			// The claim keeps its place: no Machine is created for it meanwhile.
			plan.Spares = append(plan.Spares, usable[0].Name)
		} else {
			plan.Links = append(plan.Links, Link{Machine: usable[0].Name, Claim: claim})
			plan.Served[claim.UID] = usable[0].Name
		}
		usable = usable[1:]
	}
	return waiting, append(left, usable...)
}

// because records why something stays as it is. It ignores an empty reason.
func (plan *Plan) because(subject string, why Reason) {
	if why == "" {
		return
	}
	if plan.Reasons == nil {
		plan.Reasons = map[string]Reason{}
	}
	plan.Reasons[subject] = why
}

// unmanagedOf returns the unmanaged Machines of an adopted resource: all that existed before the
// adoption and, if fewer than Unmanaged are left of these, the oldest that have never served a
// claim. Leaving Machines do not count, because they are replaced.
func unmanagedOf(state State, claims []Claim, machines []Machine) []string {
	if state.UnmanagedUntil.IsZero() {
		return nil
	}
	known := sets.New(lo.Map(claims, func(claim Claim, _ int) string { return claim.ProviderID })...).Delete("")
	var own, others []string
	serves := func(machine Machine) bool {
		return machine.Claim != "" || machine.WasLinked || known.Has(machine.ProviderID)
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
		return byTime(a.Created, b.Created, a.Name, b.Name)
	})
	slices.SortFunc(machines, older)
	return claims, machines
}

// classify returns which of the live Machines serve a claim already, which must be marked or unlinked
// (all in the plan), and which are spare. A Machine with a link is never spare. Its link is removed
// first, which includes a read from the API server, so a cache that is behind cannot give the
// Machine to another claim. others are the unmanaged Machines.
func classify(claims []Claim, machines []Machine, others []string) (plan Plan, spare []Machine) {
	plan.Served = make(map[types.UID]string, len(claims))
	unmanaged := sets.New(others...)
	own := plan.keepKnown(claims, machines)
	exists := make(map[types.UID]bool, len(claims))
	for _, claim := range claims {
		exists[claim.UID] = true
	}
	for _, machine := range machines {
		switch {
		case machine.Leaving || own[machine.Name] || unmanaged.Has(machine.Name):
		case exists[machine.Claim] && plan.Served[machine.Claim] == "":
			plan.Served[machine.Claim] = machine.Name
		case machine.Unfit || (machine.HasNode && machine.Claim != ""):
			// Pods of the claim that it served may run on it, so no other claim gets it.
			plan.Marks = append(plan.Marks, machine.Name)
		case machine.Claim != "":
			plan.Unlinks = append(plan.Unlinks, machine.Name)
		default:
			spare = append(spare, machine)
		}
	}
	return plan, spare
}

// ServedBy returns the one of the Machines linked to a claim that serves it: the one whose provider ID
// the claim has, or else the oldest that is not leaving; false if there is none. Decide returns the
// same Machine in Plan.Served, unless it has lost its instance.
func ServedBy(providerID string, linked []Machine) (Machine, bool) {
	live := lo.Reject(linked, func(machine Machine, _ int) bool { return machine.Leaving })
	if known, found := lo.Find(live, func(machine Machine) bool { return providerID != "" && machine.ProviderID == providerID }); found {
		return known, true
	}
	return lo.MinBy(live, func(a, b Machine) bool { return older(a, b) < 0 }), len(live) > 0
}

// older compares Machines by age.
func older(a, b Machine) int { return byTime(a.Created, b.Created, a.Name, b.Name) }

// byTime compares times. The names decide between those in the same second.
func byTime(a, b time.Time, nameOfA, nameOfB string) int {
	if order := a.Compare(b); order != 0 {
		return order
	}
	return cmp.Compare(nameOfA, nameOfB)
}

// keepKnown lets each claim keep the Machine whose provider ID it has, also if an older Machine was
// linked to it by mistake. If a user has removed the link, it is restored. keepKnown returns these
// Machines. The link of a claim that is being deleted is not restored, because CloudProvider.Delete
// may have unlinked its Machine.
func (plan *Plan) keepKnown(claims []Claim, machines []Machine) map[string]bool {
	byProviderID := make(map[string]*Claim, len(claims))
	for i := range claims {
		if claim := &claims[i]; claim.ProviderID != "" {
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
			plan.Links = append(plan.Links, Link{Machine: machine.Name, Claim: *claim})
		}
	}
	return own
}
