// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"slices"
	"time"

	"github.com/samber/lo"
)

// Scaling is how the replicas of a scalable resource become Machines. Its implementations are
// MachineSet and Pool. In a State, nil stands for the zero MachineSet.
type Scaling interface {
	// appeared reports whether all requested Machines exist.
	appeared(*State) bool
	// replicas returns the replicas for isNew new Machines. If the equation gives other replicas,
	// it also returns why these are not set yet.
	replicas(state *State, isNew int) (int32, Reason)
	// keeps returns a function that returns why a marked Machine must not be deleted yet. The reason is empty if
	// nothing would replace the Machine, and no other Machine would be deleted.
	keeps(state *State, isNew int) func(marked Machine) Reason
	// lowering reports whether lower replicas are on their way, with which Cluster API could delete Machines that are
	// not marked. Until it has acted on them, no Machine is linked.
	lowering(*State) bool
	// due calls the function at for each time at which the plan changes without an event.
	due(state *State, at func(time.Time, Reason))
}

// MachineSet is the Scaling of a MachineDeployment.
type MachineSet struct {
	// Replicas that the MachineSets have.
	Replicas int32
	// Behind reports whether a MachineSet has not acted on its replicas yet.
	Behind bool
	// Blocked reports whether the MachineSet has certainly not created the Machines that it lacks:
	// it has the MachineDeployment's replicas, has observed them, counts no more Machines than
	// exist, and reports that preflight checks or a missing template prevent it from creating any.
	Blocked bool
	// LoweredAt is when replicas were lowered because the MachineSet was blocked; zero if they were not. With the
	// lower replicas, the MachineSet may lack no Machine. Then it no longer reports that it is blocked.
	LoweredAt time.Time
}

// lowered reports whether replicas were lowered because the MachineSet was blocked.
func (s MachineSet) lowered() bool { return !s.LoweredAt.IsZero() }

// probes reports whether replicas may count leaving Machines again, which shows whether the MachineSet is still
// blocked. The MachineSet must have acted on the lower number, since it may delete Machines before that, and 15
// seconds must have passed.
func (s MachineSet) probes(state *State) bool {
	acted := !s.Behind && s.Replicas <= state.Replicas
	return s.lowered() && acted && !state.Now.Before(s.LoweredAt.Add(state.Durations.Probe))
}

func (s MachineSet) due(state *State, at func(time.Time, Reason)) {
	if s.lowered() {
		at(s.LoweredAt.Add(state.Durations.Probe), ProbeIsDue)
	}
}

func (MachineSet) appeared(state *State) bool { return int(state.Replicas) <= len(state.Machines) }

// replicas is the equation of the package documentation, with its rules for lowering. While the
// MachineSet is blocked, leaving Machines delay nothing, so they do not count.
func (s MachineSet) replicas(state *State, isNew int) (int32, Reason) {
	if s.lowering(state) && onlySpare(state) {
		return state.Replicas, LoweringInProgress
	}
	want := countLive(state.Machines) + isNew
	if isNew > 0 && !s.Blocked && (!s.lowered() || s.probes(state)) {
		// The next MachineSet does not count the Machines of one that is being deleted.
		want = lo.CountBy(state.Machines, func(m Machine) bool { return !m.Ending }) + isNew
	}
	if want < int(state.Replicas) {
		if why := s.cannotLower(state, want); why != "" {
			return state.Replicas, why
		}
	}
	return int32(want), ""
}

// cannotLower returns why lower replicas could delete a Machine that is not leaving. The reason is empty if all
// requested Machines exist, or if the missing ones were certainly never created. A blocked MachineSet can be
// unblocked before the lower number reaches it. Then it creates the missing Machines, and deletes as many as the
// number was lowered by: leaving ones first, then Machines without a Node, whether they serve a claim or not.
func (s MachineSet) cannotLower(state *State, want int) Reason {
	switch {
	case s.appeared(state):
		return ""
	case !s.Blocked:
		return RequestedNotCreated
	}
	live := countLive(state.Machines)
	booting := slices.ContainsFunc(state.Machines, func(m Machine) bool { return !m.leaves() && !m.HasNode })
	if booting && int(state.Replicas)-want > len(state.Machines)-live {
		return OthersCouldBeDeleted
	}
	return ""
}

// keeps returns a reason if a MachineSet has not acted on its replicas, or if any replicas are more than the live and
// the new Machines: those of the MachineSets, of the MachineDeployment or of the plan. Without a reason, a claim
// waits for each Machine that a MachineSet creates after the deletion.
func (s MachineSet) keeps(state *State, isNew int) func(Machine) Reason {
	needed := countLive(state.Machines) + isNew
	planned, _ := s.replicas(state, isNew)
	why := Reason("")
	switch {
	case s.Behind:
		why = MachineSetBehind
	case int(max(s.Replicas, state.Replicas, planned)) > needed:
		why = StillCounted
	}
	return func(Machine) Reason { return why }
}

// lowering reports whether replicas were lowered because the MachineSet was blocked, and the MachineSet has not acted
// on that yet. If it is no longer blocked, it may have created Machines for the higher number, and deletes them
// again. If it has acted on a number below that of the MachineDeployment, it deletes none: it gets the higher number
// when fewer Machines leave.
func (s MachineSet) lowering(state *State) bool {
	return s.lowered() && (s.Behind || s.Replicas > state.Replicas)
}

// onlySpare reports whether lower replicas delete only Machines that nothing needs. That is so if every Machine that
// serves a claim has a Node, because Machines without a Node are deleted first, and if replicas count all Machines
// with a Node.
func onlySpare(state *State) bool {
	kept := 0
	for _, machine := range state.Machines {
		switch {
		case machine.leaves():
		case machine.HasNode:
			kept++
		case machine.Claim != "":
			return false
		}
	}
	return kept <= int(state.Replicas)
}

// countLive returns how many Machines a MachineSet may not delete. One that has lost its infrastructure object counts until it is
// marked, because with lower replicas the MachineSet could delete another one before that.
func countLive(machines []Machine) int {
	return lo.CountBy(machines, func(m Machine) bool { return !m.Leaving && !m.Ending })
}

// Pool is the Scaling of a MachinePool, on whose replicas its infrastructure provider acts. Nothing
// shows what the provider has seen, so there are waits. docs/design/machinepools.md has the reason
// of each.
type Pool struct {
	// Unready reports whether the infrastructure cannot create Machines yet, and Ends whether it never will: the MachinePool is
	// being deleted or does not exist.
	Unready, Ends bool
	// ReplicasSetAt is when the present replicas were written.
	ReplicasSetAt time.Time
	// SettlesAt is when all caches of the provider must have recovered from a disturbance of the management cluster;
	// zero if they have. They recover one by one. Until then replicas are not lowered, and no Machine is deleted. It
	// is not part of the equation, because a disturbance must not raise replicas that were lowered before.
	SettlesAt time.Time
}

// unsettled reports whether the provider may not have recovered from a disturbance at a time.
func (p Pool) unsettled(now time.Time) bool { return now.Before(p.SettlesAt) }

// replicasSeen reports whether the provider must have seen the present replicas.
func (p Pool) replicasSeen(state *State) bool { return !state.Now.Before(p.seenAt(state)) }

func (p Pool) seenAt(state *State) time.Time { return p.ReplicasSetAt.Add(state.Durations.Settle) }

func (p Pool) due(state *State, at func(time.Time, Reason)) {
	if p.Ends {
		return
	}
	if p.Unready && len(state.Claims) > 0 {
		at(state.Now.Add(state.Durations.ReadyPoll), InfrastructureNotReady)
	}
	at(p.seenAt(state), ReplicasNotSeen)
	at(p.SettlesAt, NotSettled)
	for _, machine := range state.Machines {
		if machine.Leaving {
			at(state.markSeenAt(machine), MarkNotSeen)
		}
	}
}

// terms are the numbers of a pool's Machines. Marked Machines without a hook, and Machines whose
// instance is being deleted or no longer exists, are in none: the provider does not count such
// instances either.
type terms struct {
	// live Machines are not leaving.
	live int
	// held Machines are leaving, and a hook keeps their instances.
	held int
	// kept are those of the held ones that replicas must still count: they are not marked, or the
	// provider may not have seen the mark.
	kept int
	// unheld Machines are deleted by others and have no hook. The provider replaces them.
	unheld int
}

func termsOf(state *State) (t terms) {
	for _, machine := range state.Machines {
		switch {
		case !machine.leaves():
			t.live++
		case machine.InstanceGone:
		case machine.Hooked:
			t.held++
			if !state.markSeen(machine) {
				t.kept++
			}
		case !machine.Marked:
			t.unheld++
		}
	}
	return t
}

// lowering returns false: replicas of a pool are never lowered before all requested Machines have
// appeared.
func (Pool) lowering(*State) bool { return false }

func (Pool) appeared(state *State) bool {
	t := termsOf(state)
	return int(state.Replicas) <= t.live+t.held
}

func (p Pool) replicas(state *State, isNew int) (int32, Reason) {
	want := p.wanted(state, isNew)
	// Once the provider has seen replicas without them, the held Machines become deletable. If replicas counted them
	// again, the provider would replace them.
	if t := termsOf(state); isNew > 0 && !p.seesWanted(state, isNew) {
		want += t.held - t.kept
	}
	switch current := int(state.Replicas); {
	case want > current && p.Unready:
		return state.Replicas, InfrastructureNotReady
	case want < current && p.unsettled(state.Now):
		return state.Replicas, NotSettled
	case want < current && !p.replicasSeen(state):
		// Each change starts the settle time of marked Machines again, so there is one at a time.
		return state.Replicas, ReplicasNotSeen
	case want < current && !p.appeared(state):
		return state.Replicas, RequestedNotCreated
	default:
		return int32(want), ""
	}
}

// wanted returns the replicas that do not count the Machines that are held and not kept. With these replicas, such
// Machines can be deleted.
func (Pool) wanted(state *State, isNew int) int {
	t := termsOf(state)
	return t.live + t.unheld + t.kept + isNew
}

// keeps returns a reason while the provider may not have seen replicas without the marked Machine. It returns none if
// the provider no longer counts the Machine.
func (p Pool) keeps(state *State, isNew int) func(Machine) Reason {
	seesWanted := p.seesWanted(state, isNew)
	return func(marked Machine) Reason {
		switch {
		case marked.InstanceGone || !marked.Hooked:
			return ""
		case p.unsettled(state.Now):
			return NotSettled
		case !state.markSeen(marked):
			return MarkNotSeen
		case !p.replicasSeen(state):
			return ReplicasNotSeen
		case !seesWanted:
			return StillCounted
		}
		return ""
	}
}

// seesWanted reports whether the provider must have seen replicas without the Machines that are held
// and not kept.
func (p Pool) seesWanted(state *State, isNew int) bool {
	return p.replicasSeen(state) && int(state.Replicas) <= p.wanted(state, isNew)
}
