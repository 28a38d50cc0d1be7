// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"context"
	"slices"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// readMachineSets reads whether the MachineSets have acted on their replicas, and what prevents them
// from creating Machines.
func (s *Snapshot) readMachineSets(ctx context.Context, clusters *clients.Clusters) error {
	sets, err := scalable.MachineSets(ctx, clusters, s.Name)
	if err != nil {
		return err
	}
	state, scaling, problem := &s.State, planner.MachineSet{}, ""
	for i := range sets {
		set := SetOf(&sets[i])
		problem = cmp.Or(problem, set.ScalingUp.String())
		if !set.Deleting {
			scaling.Replicas += set.Replicas
			scaling.Behind = scaling.Behind || set.behind()
		}
	}
	state.Problem = cmp.Or(problem, state.Problem)
	if s.Resource == nil {
		state.Scaling = scaling
		return nil
	}
	deployment := s.Resource.API().(*clusterv1.MachineDeployment)
	state.Stall = stallOf(deployment, sets)
	s.setEnding(deployment, sets)
	s.Ending = scalable.CreatesNothing(deployment, sets) && len(s.Machines) > 0
	scaling.Blocked = len(sets) == 1 && certainlyBlocked(s, SetOf(&sets[0]))
	scaling.LoweredAt, _ = scalable.ReplicasLoweredAt(s.Resource)
	state.Scaling = scaling
	if several, ok := severalSets(sets, s); ok {
		state.Scaling, s.MachineSets = several, sets
	}
	return nil
}

// Set is what a MachineSet shows.
type Set struct {
	// Generation and Observed show whether the MachineSet has acted on its replicas, and Replicas are these.
	Generation, Observed int64
	Replicas             int32
	// Machines is the number of Machines that the MachineSet counts.
	Machines int32
	// Deleting reports whether the MachineSet is being deleted, and Creating whether it is the one that creates Machines.
	Deleting, Creating bool
	// ScalingUp is what Cluster API reports about Machines that are to be created, and Created the error with which it has
	// failed to create them.
	ScalingUp planner.Condition
	Created   string
}

// SetOf returns what a MachineSet shows.
func SetOf(set *clusterv1.MachineSet) Set {
	return Set{
		Generation: set.Generation, Observed: set.Status.ObservedGeneration,
		Replicas: lo.FromPtr(set.Spec.Replicas), Machines: lo.FromPtr(set.Status.Replicas),
		Deleting: !set.DeletionTimestamp.IsZero(), Creating: scalable.IsCreating(set),
		ScalingUp: conditionOf(conditions.Get(set, clusterv1.MachineSetScalingUpCondition)), Created: creationProblem(set),
	}
}

// behind reports whether a MachineSet has not acted on its replicas.
func (s Set) behind() bool { return s.Observed < s.Generation }

// certainlyBlocked reports whether a MachineSet has certainly created none of the Machines that it
// lacks: it has observed the MachineDeployment's replicas, counts no more Machines than the cache
// has, and reports that it is blocked.
func certainlyBlocked(snap *Snapshot, set Set) bool {
	return !set.Deleting && set.blockedBy() != "" && !set.behind() &&
		set.Replicas == snap.Resource.Replicas() && int(set.Machines) <= len(snap.Machines)
}

// severalSets returns the Scaling of a MachineDeployment that has Machines in an older MachineSet, see
// planner.MachineSets; false if it has one MachineSet, or the others are empty.
func severalSets(sets []clusterv1.MachineSet, snap *Snapshot) (planner.MachineSets, bool) {
	deployment := snap.Resource.API().(*clusterv1.MachineDeployment)
	// With another strategy, older MachineSets are not marked, and lose their Machines.
	if deployment.Spec.Rollout.Strategy.Type != clusterv1.OnDeleteMachineDeploymentStrategyType {
		return planner.MachineSets{}, false
	}
	scaling := planner.MachineSets{Observed: scalable.IsObserved(deployment)}
	current := 0
	for i := range sets {
		set := SetOf(&sets[i])
		current += lo.Ternary(set.Creating, 1, 0)
		scaling.Sets = append(scaling.Sets, planner.Set{Name: sets[i].Name, Replicas: set.Replicas, Current: set.Creating, Behind: !set.Deleting && set.behind()})
	}
	if current > 1 {
		// The MachineDeployment controller has not marked the older ones yet.
		for i := range scaling.Sets {
			scaling.Sets[i].Current, scaling.Sets[i].Behind = false, true
		}
	}
	return scaling, snap.hasOlder(scaling, sets)
}

// hasOlder reports whether Machines exist in a MachineSet that is not the current one, or that is not
// known yet.
func (s *Snapshot) hasOlder(scaling planner.MachineSets, sets []clusterv1.MachineSet) bool {
	if len(sets) == 0 {
		return false // it is about to get its first MachineSet
	}
	for i := range s.State.Machines {
		name := s.State.Machines[i].Set
		if name != "" && !slices.ContainsFunc(scaling.Sets, func(set planner.Set) bool { return set.Name == name && set.Current }) {
			return true
		}
	}
	// The planner has the MachineSets in the same order.
	for i, set := range scaling.Sets {
		if !set.Current && (set.Replicas > 0 || SetOf(&sets[i]).Machines > 0) {
			return true
		}
	}
	return false
}

// setEnding sets which Machines of a MachineDeployment are deleted with their MachineSet. While a
// MachineDeployment or MachineSet is being deleted, its controller only deletes what it owns, and creates
// nothing (Cluster API: core/reconcilers/machinedeployment/machinedeployment_controller.go and
// core/reconcilers/machineset/machineset_controller.go, reconcileDelete). Kubernetes' garbage collector does
// the same in another order.
func (s *Snapshot) setEnding(deployment *clusterv1.MachineDeployment, machineSets []clusterv1.MachineSet) {
	deleted := sets.New[string]()
	for i := range machineSets {
		if !machineSets[i].DeletionTimestamp.IsZero() {
			deleted.Insert(machineSets[i].Name)
		}
	}
	for i := range s.State.Machines {
		read := &s.State.Machines[i]
		read.Ending = !deployment.DeletionTimestamp.IsZero() || deleted.Has(read.Set)
	}
}
