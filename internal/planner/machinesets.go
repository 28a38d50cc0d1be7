// SPDX-License-Identifier: Apache-2.0

package planner

import "time"

// MachineSets is the Scaling of a MachineDeployment that has Machines in an older MachineSet: a user
// has changed fields that Cluster API rolls out, and the strategy OnDelete keeps existing Machines in
// their MachineSet.
//
// Lowering the replicas of such a MachineDeployment is not enough to remove a Machine. Its
// controller takes the excess from the oldest MachineSet, whichever Machine is marked. It creates a
// Machine in the current MachineSet when there are fewer than replicas (Cluster API:
// core/reconcilers/machinedeployment/machinedeployment_rollout_ondelete.go;
// mdutil/util.go, NewMSNewReplicas):
//
//	too many  Σ replicas of the MachineSets > replicas
//	too few   Σ max(replicas, Machines) of the MachineSets < replicas
//
// So each MachineSet has its own equation, and replicas are the sum:
//
//	older MachineSet    its live Machines
//	current MachineSet  its live Machines + new + (its leaving ones if new > 0, else 0)
//
// A Machine is removed in this order, in which there are never too many or too few:
//
//  1. It is marked and gets a hook, so that it exists until the last step.
//  2. The replicas of its MachineSet are lowered. The MachineSet deletes the marked Machine.
//  3. When the MachineSet has acted on that, the replicas of the MachineDeployment are lowered.
//  4. When the MachineDeployment controller has acted on that, the hook is removed.
//
// Only the third step can cost another Machine, so it waits for every MachineSet and for leaving
// Machines without a hook. A Machine that disappears too early is replaced by one that serves no
// claim, and nothing is lowered for it.
type MachineSets struct {
	// Sets are all MachineSets of the MachineDeployment.
	Sets []Set
	// Observed reports whether the MachineDeployment controller has acted on its replicas.
	Observed bool
}

// Set is one of several MachineSets of a MachineDeployment.
type Set struct {
	Name string
	// Replicas that the MachineSet has.
	Replicas int32
	// Current reports whether the MachineSet creates Machines; an older one never does.
	Current bool
	// Behind reports whether the MachineSet has not acted on its replicas yet.
	Behind bool
}

func (MachineSets) appeared(state *State) bool { return MachineSet{}.appeared(state) }

func (MachineSets) due(*State, func(time.Time, Reason)) {}

// lowering returns false: replicas are never lowered because a MachineSet is blocked.
func (MachineSets) lowering(*State) bool { return false }

// replicas returns the sum of what the MachineSets should have. It is never lower than what they
// have, because the MachineDeployment controller would choose which of them loses a Machine.
func (s MachineSets) replicas(state *State, isNew int) (int32, Reason) {
	want, has, hasCurrent := 0, 0, false
	targets := s.targets(state, isNew)
	for _, set := range s.Sets {
		want += int(targets[set.Name])
		has += int(set.Replicas)
		hasCurrent = hasCurrent || set.Current
	}
	if !hasCurrent {
		want += isNew // for the MachineSet that the MachineDeployment controller will create
	}
	switch current := int(state.Replicas); {
	case want >= current:
		return int32(want), ""
	case has >= current:
		return state.Replicas, StillCounted
	case s.behind(state):
		return state.Replicas, MachineSetBehind
	case !s.complete(state):
		return state.Replicas, RequestedNotCreated
	default:
		// The MachineDeployment controller knows what its MachineSets have, and has no reason to
		// create a Machine until it sees the lower replicas.
		return int32(max(want, has)), ""
	}
}

// targets returns the replicas that each MachineSet should have.
func (s MachineSets) targets(state *State, isNew int) map[string]int32 {
	targets, complete := map[string]int32{}, s.complete(state)
	for _, set := range s.Sets {
		machines := s.machinesOf(set, state)
		want := machines.live
		if set.Current && isNew > 0 {
			want += isNew + machines.leaving
		}
		if want < int(set.Replicas) && (!complete || machines.stable < int(set.Replicas)) {
			// The cache may lack requested Machines, or a leaving one may disappear before replicas
			// are lowered.
			want = int(set.Replicas)
		}
		if !set.Current {
			want = min(want, int(set.Replicas))
		}
		targets[set.Name] = int32(want)
	}
	return targets
}

// complete reports whether the MachineDeployment controller finds that there are enough Machines.
func (s MachineSets) complete(state *State) bool {
	sum := 0
	for _, set := range s.Sets {
		sum += max(int(set.Replicas), s.machinesOf(set, state).stable)
	}
	return sum >= int(state.Replicas)
}

// keeps returns a reason if a deletion of a marked Machine could make its MachineSet or the MachineDeployment
// controller create another one.
func (s MachineSets) keeps(state *State, _ int) func(Machine) Reason {
	why := Reason("")
	switch {
	case s.behind(state):
		why = MachineSetBehind
	case !s.Observed:
		why = DeploymentBehind
	}
	sum, counts := 0, map[string]bool{}
	for _, set := range s.Sets {
		sum += int(set.Replicas)
		counts[set.Name] = int(set.Replicas) > s.machinesOf(set, state).live
	}
	return func(marked Machine) Reason {
		if why == "" && (counts[marked.Set] || int(state.Replicas) > sum) {
			return StillCounted
		}
		return why
	}
}

// behind reports whether a MachineSet has not acted on its replicas, or the cache is behind. It is behind if it lacks
// the MachineSet of a Machine, or shows fewer replicas than live Machines, which a MachineSet has only briefly.
func (s MachineSets) behind(state *State) bool {
	known := map[string]bool{}
	for _, set := range s.Sets {
		if set.Behind || int(set.Replicas) < s.machinesOf(set, state).live {
			return true
		}
		known[set.Name] = true
	}
	for _, machine := range state.Machines {
		if !known[machine.Set] {
			return true
		}
	}
	return false
}

// setMachines are the numbers of a MachineSet's Machines. A stable one is live, or a hook of this operator keeps it.
// Only a live one can disappear, if others delete it.
type setMachines struct{ live, leaving, stable int }

func (s MachineSets) machinesOf(set Set, state *State) (machines setMachines) {
	for _, machine := range state.Machines {
		switch {
		case machine.Set != set.Name:
		case !machine.leaves():
			machines.live++
			machines.stable++
		case machine.Hooked:
			machines.leaving++
			machines.stable++
		default:
			machines.leaving++
		}
	}
	return machines
}
