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
	// LoweredAt is the time to write at which replicas were lowered because the MachineSet is blocked. It is zero to remove the
	// present one, and nil to keep it.
	LoweredAt *time.Time
	// Deletable are marked Machines that can be deleted now.
	Deletable []string
	// Reasons are why replicas, Machines and claims stay as they are for now, by name: "replicas",
	// "Machine NAME" or "NodeClaim NAME".
	Reasons map[string]Reason
	// Served maps each claim that has a live Machine, including Links, to the name of that Machine.
	Served map[types.UID]string
	// Linking has the claims whose link is being written or is one of Links.
	Linking sets.Set[types.UID]
	// Waiting has the claims that should get a Machine and have none.
	Waiting sets.Set[types.UID]
	// Outcomes has what becomes of claims that get no Machine now. Those that just wait are not in it.
	Outcomes map[types.UID]Outcome
	// Lost are Machines that have lost their instance before they became a Node. They are marked, and their claims get others.
	Lost []string
	// Because has why a Machine is in Marks, Unlinks or Lost.
	Because map[string]Reason
	// Due is when time alone changes the plan.
	Due Due
}

// planning is a plan in the making.
type planning struct {
	// State has the claims and Machines oldest first, and Machines whose link is being written as linked.
	State
	scaling Scaling
	links   linksByClaim
	// acted is when Cluster API last created a Machine, or resumed the resource.
	acted time.Time
	// byName finds the machines.
	byName map[string]*Machine
	plan   Plan
}

// Decide returns the plan for one scalable resource.
//
// Claims that wait, oldest first, get the spare Machines, oldest first. The name decides between
// equal times, because timestamps have whole seconds. If several live Machines are linked to one
// claim, the one whose provider ID the claim has stays linked, else the oldest.
//
// Of a suspended resource, replicas stay as they are. While the Cluster is being deleted, replicas are never raised.
func Decide(state *State) Plan {
	p := newPlanning(state)
	if state.Suspended {
		p.plan.Replicas = state.Replicas
		p.plan.because("replicas", ControlledByOthers)
	} else {
		p.decideMachines()
	}
	if state.ClusterDeleting {
		p.plan.Replicas = min(p.plan.Replicas, state.Replicas)
		if !state.Suspended {
			p.plan.because("replicas", ClusterIsDeleting)
		}
	}
	for _, claim := range p.Claims {
		switch {
		case claim.NeedsMachine && p.overLimit(claim):
			p.plan.because("NodeClaim "+claim.Name, LimitIsReached)
		case p.plan.Served[claim.UID] == "" && p.needsMachine(claim):
			p.plan.Waiting.Insert(claim.UID)
		}
	}
	p.decideOutcomes()
	p.decideDue()
	return p.plan
}

func newPlanning(state *State) *planning {
	p := &planning{State: *state, scaling: state.Scaling, acted: state.actedAt(), byName: make(map[string]*Machine, len(state.Machines))}
	if p.scaling == nil {
		p.scaling = MachineSet{}
	}
	p.Claims, p.Machines = byAge(state)
	p.plan = Plan{Linking: sets.New[types.UID](), Waiting: sets.New[types.UID](), Outcomes: map[types.UID]Outcome{}}
	for i := range p.Machines {
		machine := &p.Machines[i]
		p.byName[machine.Name] = machine
		if machine.isLost() {
			p.plan.Lost = append(p.plan.Lost, machine.Name)
			p.plan.remove(machine.Name, InstanceIsGone)
		}
	}
	p.links = linksOf(p.Claims, p.Machines, p.byName, p.Open)
	return p
}

// servedBy returns the Machine that serves a claim; false if none does.
func (p *planning) servedBy(claim Claim) (*Machine, bool) {
	machine, found := p.byName[p.plan.Served[claim.UID]]
	return machine, found
}

// decideMachines decides which Machines serve which claims, which are removed, and how many there should be.
func (p *planning) decideMachines() {
	unmanaged := p.unmanaged()
	spare := p.classify(unmanaged)

	hold := p.scaling.lowering(&p.State)
	waiting, spare := p.serve(spare, hold)
	// While requested Machines have not appeared, a spare one that is removed would only be replaced.
	appeared := p.scaling.appeared(&p.State) && !hold
	for _, machine := range spare {
		switch expired := p.expired(machine); {
		case expired && appeared:
			p.plan.Marks = append(p.plan.Marks, machine.Name)
			p.plan.remove(machine.Name, SpareTTLEnds)
		case expired:
			p.plan.because("Machine "+machine.Name, lo.Ternary(hold, LoweringInProgress, RequestedNotCreated))
			fallthrough
		default:
			p.plan.Spares = append(p.plan.Spares, machine.Name)
		}
	}

	// A Machine in Marks counts as live until the cache shows that it is leaving, because the write
	// may fail. One in Unlinks counts as spare for a claim that still waits.
	waiting = max(0, waiting-len(p.plan.Unlinks))
	// Unmanaged Machines that are being deleted or no longer exist are replaced, as if claims waited.
	waiting += max(0, int(p.Unmanaged)-len(unmanaged))
	var why Reason
	p.plan.Replicas, why = p.scaling.replicas(&p.State, waiting)
	p.plan.because("replicas", why)
	p.decideLoweredAt()
	keeps := p.scaling.keeps(&p.State, waiting)
	for _, machine := range p.Machines {
		if !machine.Marked {
			continue
		}
		if why := keeps(machine); why != "" && !machine.Ending {
			p.plan.because("Machine "+machine.Name, why)
		} else {
			p.plan.Deletable = append(p.plan.Deletable, machine.Name)
		}
	}
	p.plan.Unmanaged = unmanaged
}

// decideLoweredAt decides about the time at which replicas were lowered because the MachineSet is blocked.
func (p *planning) decideLoweredAt() {
	set, _ := p.scaling.(MachineSet)
	switch lowers := p.plan.Replicas < p.Replicas; {
	case p.plan.Replicas == p.Replicas:
	case set.Blocked && lowers:
		p.plan.LoweredAt = &p.Now
	case set.lowered() && lowers:
		// The cache may lack a Machine that was created meanwhile. It must not be linked yet.
	case set.Blocked || !set.lowered() || set.probes(&p.State):
		p.plan.LoweredAt = &time.Time{}
	}
}

// serve links the oldest spare Machines to the claims that wait. It returns how many claims still
// wait, and the spare Machines that are left. With hold, nothing is linked.
func (p *planning) serve(spare []Machine, hold bool) (waiting int, left []Machine) {
	left, usable := lo.FilterReject(spare, func(machine Machine, _ int) bool { return machine.HasNode })
	for _, claim := range p.Claims {
		if p.plan.Served[claim.UID] != "" || !p.needsMachine(claim) {
			continue
		}
		if len(usable) == 0 {
			waiting++
			p.plan.because("NodeClaim "+claim.Name, NoSpareMachine)
			continue
		}
		if hold {
			p.plan.because("NodeClaim "+claim.Name, LoweringInProgress)
			// The claim keeps its place: no Machine is created for it meanwhile.
			p.plan.Spares = append(p.plan.Spares, usable[0].Name)
		} else {
			p.plan.Links = append(p.plan.Links, Link{Machine: usable[0].Name, Claim: claim})
			p.plan.Served[claim.UID] = usable[0].Name
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

// remove records why a Machine is marked or unlinked.
func (plan *Plan) remove(machine string, why Reason) {
	if plan.Because == nil {
		plan.Because = map[string]Reason{}
	}
	plan.Because[machine] = why
}

// unmanaged returns the unmanaged Machines of an adopted resource: all that existed before the
// adoption and, if fewer than Unmanaged are left of these, the oldest that have never served a
// claim. Leaving Machines do not count, because they are replaced.
func (p *planning) unmanaged() []string {
	if p.UnmanagedUntil.IsZero() {
		return nil
	}
	known := sets.New(lo.Map(p.Claims, func(claim Claim, _ int) string { return claim.ProviderID })...).Delete("")
	var own, others []string
	serves := func(machine Machine) bool {
		return machine.Claim != "" || machine.WasLinked || known.Has(machine.ProviderID)
	}
	for _, machine := range p.Machines {
		switch {
		case machine.leaves() || serves(machine):
		case !machine.Created.After(p.UnmanagedUntil):
			own = append(own, machine.Name)
		default:
			others = append(others, machine.Name)
		}
	}
	return append(own, others[:min(len(others), max(0, int(p.Unmanaged)-len(own)))]...)
}

// byAge returns the claims and Machines of a state, oldest first.
func byAge(state *State) ([]Claim, []Machine) {
	claims := sorted(state.Claims, func(a, b *Claim) int { return byTime(a.Created, b.Created, a.Name, b.Name) })
	return claims, sorted(state.Machines, older)
}

// sorted returns a sorted copy. It sorts pointers, because the values are large.
func sorted[T any](values []T, order func(a, b *T) int) []T {
	pointers := lo.ToSlicePtr(values)
	slices.SortFunc(pointers, order)
	return lo.FromSlicePtr(pointers)
}

// classify decides which of the live Machines serve a claim already, and which must be marked or unlinked. It returns those that
// are spare. A Machine with a link is never spare. Its link is removed first, which includes a read from the API server, so a
// cache that is behind cannot give the Machine to another claim.
func (p *planning) classify(unmanaged []string) (spare []Machine) {
	p.plan.Served = make(map[types.UID]string, len(p.Claims))
	others := sets.New(unmanaged...)
	own := p.keepKnown()
	exists := make(map[types.UID]bool, len(p.Claims))
	for _, claim := range p.Claims {
		exists[claim.UID] = true
	}
	for _, machine := range p.Machines {
		name, unfit := machine.Name, p.unfit(machine)
		switch {
		case machine.leaves() || own[name] || others.Has(name):
		case exists[machine.Claim] && p.plan.Served[machine.Claim] == "":
			p.plan.Served[machine.Claim] = name
		case unfit != "":
			p.plan.Marks = append(p.plan.Marks, name)
			p.plan.remove(name, unfit)
		case machine.HasNode && machine.Claim != "":
			// Pods of the claim that it served may run on it, so no other claim gets it.
			p.plan.Marks = append(p.plan.Marks, name)
			p.plan.remove(name, HadPods)
		case machine.Claim != "":
			p.plan.Unlinks = append(p.plan.Unlinks, name)
			p.plan.remove(name, lo.Ternary(exists[machine.Claim], ClaimHasAnother, ClaimIsGone))
		default:
			spare = append(spare, machine)
		}
	}
	return spare
}

// ServedBy returns the one of the Machines linked to a claim that serves it: the one whose provider ID
// the claim has, or else the oldest that is not leaving; false if there is none. Decide returns the
// same Machine in Plan.Served, unless it has lost its instance.
func ServedBy(providerID string, linked []Machine) (Machine, bool) {
	live := lo.Reject(linked, func(machine Machine, _ int) bool { return machine.leaves() })
	if known, found := lo.Find(live, func(machine Machine) bool { return providerID != "" && machine.ProviderID == providerID }); found {
		return known, true
	}
	return lo.MinBy(live, func(a, b Machine) bool { return older(&a, &b) < 0 }), len(live) > 0
}

// older compares Machines by age.
func older(a, b *Machine) int { return byTime(a.Created, b.Created, a.Name, b.Name) }

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
func (p *planning) keepKnown() map[string]bool {
	byProviderID := make(map[string]*Claim, len(p.Claims))
	for i := range p.Claims {
		if claim := &p.Claims[i]; claim.ProviderID != "" {
			byProviderID[claim.ProviderID] = claim
		}
	}
	own := map[string]bool{}
	for _, machine := range p.Machines {
		claim, known := byProviderID[machine.ProviderID]
		switch {
		case machine.leaves() || !known || p.plan.Served[claim.UID] != "":
		case machine.Claim == claim.UID:
			own[machine.Name] = true
			p.plan.Served[claim.UID] = machine.Name
		case machine.Claim == "" && !claim.Leaving:
			own[machine.Name] = true
			p.plan.Served[claim.UID] = machine.Name
			p.plan.Links = append(p.plan.Links, Link{Machine: machine.Name, Claim: *claim})
		}
	}
	return own
}
