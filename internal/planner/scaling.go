// SPDX-License-Identifier: Apache-2.0

package planner

import "slices"

// Scaling is how a kind of scalable resource gets from its replicas to its Machines.
// It is MachineSet, which is also what no Scaling at all stands for, MachineSets or Pool.
type Scaling interface {
	// appeared tells whether all Machines that were asked for are there.
	appeared(State) bool
	// replicas returns what replicas are to be, for a number of Machines that are new.
	// If others are wanted, it also returns why they are not set yet.
	replicas(state State, isNew int) (int32, Reason)
	// keeps returns why a marked Machine must exist for now. It is empty if whoever acts on the
	// replicas can do no harm any more when the Machine is deleted.
	keeps(marked Machine, state State, isNew int) Reason
	// lowering reports whether a lower number is on its way that can make the resource
	// delete Machines that this operator did not mark. No Machine is linked then.
	lowering(State) bool
}

// MachineSet is the Scaling of a MachineDeployment.
type MachineSet struct {
	// Replicas that the MachineSets have.
	Replicas int32
	// Behind tells whether a MachineSet has not acted on its replicas yet.
	Behind bool
	// Blocked reports whether the MachineSet certainly did not create the Machines that it
	// lacks: it has the MachineDeployment's replicas, has observed them, counts no more
	// Machines than exist, and reports that its preflight checks keep it from creating any.
	Blocked bool
	// Lowered reports whether the MachineDeployment's replicas were lowered because of that.
	// A MachineSet that lacks no Machine does not report that it is blocked.
	Lowered bool
	// Probe reports whether that was so long ago that replicas may count leaving Machines
	// again, to see whether the MachineSet still is blocked. It has acted on the lower number.
	Probe bool
}

func (MachineSet) appeared(state State) bool { return int(state.Replicas) <= len(state.Machines) }

// replicas is the equation of the package's document, with its rules for lowering. While the
// MachineSet is blocked, leaving Machines delay nothing, so they do not count.
func (s MachineSet) replicas(state State, isNew int) (int32, Reason) {
	if s.lowering(state) && onlySpare(state) {
		return state.Replicas, LoweringInProgress
	}
	want := countLive(state.Machines) + isNew
	if isNew > 0 && !s.Blocked && (!s.Lowered || s.Probe) {
		want = len(state.Machines) + isNew
	}
	if want < int(state.Replicas) {
		if why := s.cannotLower(state, want); why != "" {
			return state.Replicas, why
		}
	}
	return int32(want), ""
}

// cannotLower returns why lower replicas could delete a Machine that is not leaving. Those that
// were asked for have appeared, or were certainly never created. A blocked MachineSet can
// be unblocked before the lower number reaches it. Then it creates what it lacks, and
// deletes as many Machines as the number was lowered by: first the leaving ones, and then
// Machines without a Node, whether they serve a claim or not.
func (s MachineSet) cannotLower(state State, want int) Reason {
	switch {
	case s.appeared(state):
		return ""
	case !s.Blocked:
		return RequestedNotCreated
	}
	live := countLive(state.Machines)
	booting := slices.ContainsFunc(state.Machines, func(m Machine) bool { return !m.Leaving && !m.HasNode })
	if booting && int(state.Replicas)-want > len(state.Machines)-live {
		return OthersCouldBeDeleted
	}
	return ""
}

// keeps returns a reason unless neither the MachineSets have, nor the MachineDeployment has or
// will get, more replicas than there are live Machines and claims that wait. What a MachineSet
// creates when a leaving Machine is deleted is then what a claim waits for.
func (s MachineSet) keeps(_ Machine, state State, isNew int) Reason {
	needed := countLive(state.Machines) + isNew
	planned, _ := s.replicas(state, isNew)
	switch {
	case s.Behind:
		return MachineSetBehind
	case int(max(s.Replicas, state.Replicas, planned)) > needed:
		return StillCounted
	}
	return ""
}

// lowering reports whether the MachineSet still has to act on replicas that were lowered
// because it was blocked. If it was unblocked meanwhile, it has created Machines for the
// higher number, and deletes them again. One that has a lower number and has acted on it
// deletes none: the MachineDeployment controller gives it a higher one later, when fewer
// Machines leave.
func (s MachineSet) lowering(state State) bool {
	return s.Lowered && (s.Behind || s.Replicas > state.Replicas)
}

// onlySpare reports whether lower replicas delete Machines that nothing needs: those that
// serve a claim have a Node, so that Machines without one are deleted before them.
func onlySpare(state State) bool {
	kept := 0
	for _, machine := range state.Machines {
		switch {
		case machine.Leaving:
		case machine.HasNode:
			kept++
		case machine.Claim != "":
			return false
		}
	}
	return kept <= int(state.Replicas)
}

func countLive(machines []Machine) int {
	live := 0
	for _, machine := range machines {
		if !machine.Leaving {
			live++
		}
	}
	return live
}

// Pool is the Scaling of a MachinePool, on whose replicas its infrastructure provider
// acts. Nothing tells what that has seen, so there are waits; why each is needed is in
// docs/design/machinepools.md.
type Pool struct {
	// Unready tells whether the infrastructure cannot be asked for Machines yet.
	Unready bool
	// ReplicasSeen tells whether the provider must have seen the replicas as they are.
	ReplicasSeen bool
}

// terms are the numbers of a pool's Machines. Those that were let go, or whose
// instances are going by themselves, are in none: an instance that goes does not count
// for a provider either.
type terms struct {
	// live Machines stay.
	live int
	// held Machines are leaving, and their instances are kept by a hook.
	held int
	// kept are those of the held ones that replicas must still count: they were not
	// chosen, or not for long enough that the provider must know which they are.
	kept int
	// unheld Machines are deleted by others and have no hook: the provider makes
	// others in their place.
	unheld int
}

func termsOf(machines []Machine) (t terms) {
	for _, machine := range machines {
		switch {
		case !machine.Leaving:
			t.live++
		case machine.InstanceGone:
		case machine.Hooked:
			t.held++
			if !machine.MarkSeen {
				t.kept++
			}
		case !machine.Marked:
			t.unheld++
		}
	}
	return t
}

// lowering returns false: replicas of a pool are never lowered before all Machines that
// were asked for have appeared.
func (Pool) lowering(State) bool { return false }

func (Pool) appeared(state State) bool {
	t := termsOf(state.Machines)
	return int(state.Replicas) <= t.live+t.held
}

func (p Pool) replicas(state State, isNew int) (int32, Reason) {
	want := p.wanted(state, isNew)
	// Machines that become deletable at the same time would be created again.
	if t := termsOf(state.Machines); isNew > 0 && !p.seesWanted(state, isNew) {
		want += t.held - t.kept
	}
	switch current := int(state.Replicas); {
	case want > current && p.Unready:
		return state.Replicas, InfrastructureNotReady
	case want < current && !p.ReplicasSeen:
		// Each change starts the settle time of marked Machines again, so there is one at a time.
		return state.Replicas, ReplicasNotSeen
	case want < current && !p.appeared(state):
		return state.Replicas, RequestedNotCreated
	default:
		return int32(want), ""
	}
}

// wanted returns the replicas with which those Machines can go that need not be kept.
func (Pool) wanted(state State, isNew int) int {
	t := termsOf(state.Machines)
	return t.live + t.unheld + t.kept + isNew
}

// keeps returns a reason until the provider must have seen the replicas without the marked
// Machine, or can do nothing about it any more.
func (p Pool) keeps(marked Machine, state State, isNew int) Reason {
	switch {
	case marked.InstanceGone || !marked.Hooked:
		return ""
	case !marked.MarkSeen:
		return MarkNotSeen
	case !p.ReplicasSeen:
		return ReplicasNotSeen
	case !p.seesWanted(state, isNew):
		return StillCounted
	}
	return ""
}

// seesWanted reports whether the provider must have seen replicas without the Machines that
// need not be kept.
func (p Pool) seesWanted(state State, isNew int) bool {
	return p.ReplicasSeen && int(state.Replicas) <= p.wanted(state, isNew)
}
