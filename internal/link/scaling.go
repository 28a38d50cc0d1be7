// SPDX-License-Identifier: Apache-2.0

package link

// Scaling is how a kind of scalable resource gets from its replicas to its Machines.
// It is MachineSet, which is also what no Scaling at all stands for, or Pool.
type Scaling interface {
	// appeared tells whether all Machines that were asked for are there.
	appeared(State) bool
	// replicas returns what replicas are to be, for a number of Machines that are new.
	replicas(state State, isNew int) int32
	// mayGo tells whether whoever acts on the replicas can do no harm any more when a
	// chosen Machine is deleted.
	mayGo(chosen Machine, state State, isNew int) bool
}

// MachineSet is the Scaling of a MachineDeployment.
type MachineSet struct {
	// Replicas that the MachineSets have.
	Replicas int32
	// Behind tells whether a MachineSet has not acted on its replicas yet.
	Behind bool
}

func (MachineSet) appeared(state State) bool { return int(state.Replicas) <= len(state.Machines) }

// replicas is the equation of the package's document, with its rule for lowering.
func (s MachineSet) replicas(state State, isNew int) int32 {
	live := countLive(state.Machines)
	want := live + isNew
	if isNew > 0 {
		want = len(state.Machines) + isNew
	}
	if want < int(state.Replicas) && !s.appeared(state) {
		return state.Replicas
	}
	return int32(want)
}

// mayGo tells whether the MachineSets have so few replicas that none makes another
// Machine in place of one that goes.
func (s MachineSet) mayGo(_ Machine, state State, _ int) bool {
	return !s.Behind && int(s.Replicas) <= countLive(state.Machines)
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
	// Settled tells whether the provider must have seen the replicas as they are.
	Settled bool
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
		case machine.Gone:
		case machine.Held:
			t.held++
			if !machine.Settled {
				t.kept++
			}
		case !machine.Chosen:
			t.unheld++
		}
	}
	return t
}

func (Pool) appeared(state State) bool {
	t := termsOf(state.Machines)
	return int(state.Replicas) <= t.live+t.held
}

func (p Pool) replicas(state State, isNew int) int32 {
	want := p.wanted(state, isNew)
	// Those that are let go at the same time would be made once more.
	if t := termsOf(state.Machines); isNew > 0 && !p.letsGo(state, isNew) {
		want += t.held - t.kept
	}
	// Lowered no more often than chosen Machines are let go: each change begins their
	// wait anew.
	switch current := int(state.Replicas); {
	case want > current && p.Unready, want < current && (!p.Settled || !p.appeared(state)):
		return state.Replicas
	default:
		return int32(want)
	}
}

// wanted returns the replicas with which those Machines can go that need not be kept.
func (Pool) wanted(state State, isNew int) int {
	t := termsOf(state.Machines)
	return t.live + t.unheld + t.kept + isNew
}

// mayGo tells whether the provider must have seen the replicas without the chosen
// Machine, or can do nothing about it any more.
func (p Pool) mayGo(chosen Machine, state State, isNew int) bool {
	return chosen.Gone || !chosen.Held || chosen.Settled && p.letsGo(state, isNew)
}

// letsGo tells whether the provider must have seen replicas without the Machines that
// need not be kept.
func (p Pool) letsGo(state State, isNew int) bool {
	return p.Settled && int(state.Replicas) <= p.wanted(state, isNew)
}
