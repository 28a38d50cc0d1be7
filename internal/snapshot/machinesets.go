// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"context"
	"slices"

	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	"github.com/karpenter-capi/karpenter-capi/internal/operator"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// loadMachineSets reads whether the MachineSets have acted on their replicas, and what prevents them
// from creating Machines.
func (s *Snapshot) loadMachineSets(ctx context.Context, clusters *operator.Clusters) error {
	sets, err := scalable.MachineSets(ctx, clusters, s.Name)
	if err != nil {
		return err
	}
	scaling := planner.MachineSet{}
	for i := range sets {
		s.scalingProblem = cmp.Or(s.scalingProblem, problem(conditions.Get(&sets[i], clusterv1.MachineSetScalingUpCondition)))
		if sets[i].DeletionTimestamp.IsZero() {
			scaling.Replicas += lo.FromPtr(sets[i].Spec.Replicas)
			scaling.Behind = scaling.Behind || sets[i].Status.ObservedGeneration < sets[i].Generation
		}
	}
	if s.Resource == nil {
		s.scaling = scaling
		return nil
	}
	deployment := s.Resource.API().(*clusterv1.MachineDeployment)
	s.stall, s.endingMachines = stallOf(deployment, sets), endingOf(deployment, sets, s.Machines)
	s.Ending = scalable.CreatesNothing(deployment, sets) && len(s.Machines) > 0
	scaling.Blocked = len(sets) == 1 && certainlyBlocked(s, &sets[0])
	if at, lowered := scalable.ReplicasLoweredAt(s.Resource); lowered {
		probeAt := at.Add(s.times().Probe)
		// A MachineSet that has not acted on the lower number may delete Machines when Cluster API
		// acts again.
		acted := !scaling.Behind && scaling.Replicas <= s.Resource.Replicas()
		scaling.Lowered, scaling.Probe = true, acted && !s.Now.Before(probeAt)
		s.due = append(s.due, probeAt)
	}
	s.scaling = scaling
	if several, ok := severalSets(sets, s); ok {
		s.scaling, s.MachineSets = several, sets
	}
	return nil
}

// certainlyBlocked reports whether a MachineSet has certainly created none of the Machines that it
// lacks: it has observed the MachineDeployment's replicas, counts no more Machines than the cache
// has, and reports that it is blocked.
func certainlyBlocked(snap *Snapshot, set *clusterv1.MachineSet) bool {
	return set.DeletionTimestamp.IsZero() && blockedBy(set) != "" &&
		set.Status.ObservedGeneration >= set.Generation &&
		lo.FromPtr(set.Spec.Replicas) == snap.Resource.Replicas() &&
		int(lo.FromPtr(set.Status.Replicas)) <= len(snap.Machines)
}

// severalSets returns the Scaling of a MachineDeployment that has Machines in an older MachineSet, see
// planner.MachineSets; false if it has one MachineSet, or the others are empty.
func severalSets(sets []clusterv1.MachineSet, snap *Snapshot) (planner.MachineSets, bool) {
	deployment := snap.Resource.API().(*clusterv1.MachineDeployment)
	// With another strategy, older MachineSets are not marked, and lose their Machines.
	if deployment.Spec.Rollout.Strategy.Type != clusterv1.OnDeleteMachineDeploymentStrategyType {
		return planner.MachineSets{}, false
	}
	scaling := planner.MachineSets{Of: make(map[string]string, len(snap.Machines)), Observed: scalable.IsObserved(deployment)}
	for _, machine := range snap.Machines {
		if owner := metav1.GetControllerOfNoCopy(machine); owner != nil {
			scaling.Of[machine.Name] = owner.Name
		}
	}
	current := 0
	for i := range sets {
		set := planner.Set{
			Name:     sets[i].Name,
			Replicas: lo.FromPtr(sets[i].Spec.Replicas),
			Current:  scalable.IsCreating(&sets[i]),
			Behind:   sets[i].DeletionTimestamp.IsZero() && sets[i].Status.ObservedGeneration < sets[i].Generation,
		}
		current += lo.Ternary(set.Current, 1, 0)
		scaling.Sets = append(scaling.Sets, set)
	}
	if current > 1 {
		// The MachineDeployment controller has not marked the older ones yet.
		for i := range scaling.Sets {
			scaling.Sets[i].Current, scaling.Sets[i].Behind = false, true
		}
	}
	return scaling, hasOlder(scaling, sets)
}

// hasOlder reports whether Machines exist in a MachineSet that is not the current one, or that is not
// known yet.
func hasOlder(scaling planner.MachineSets, sets []clusterv1.MachineSet) bool {
	if len(sets) == 0 {
		return false // it is about to get its first MachineSet
	}
	for _, name := range scaling.Of {
		if !slices.ContainsFunc(scaling.Sets, func(set planner.Set) bool { return set.Name == name && set.Current }) {
			return true
		}
	}
	// The planner has the MachineSets in the same order.
	for i, set := range scaling.Sets {
		if !set.Current && (set.Replicas > 0 || lo.FromPtr(sets[i].Status.Replicas) > 0) {
			return true
		}
	}
	return false
}
