// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"context"

	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	s.setOrphans(ctx, clusters)
	s.Ending = scalable.CreatesNothing(deployment, sets) && len(s.Machines) > 0
	scaling.Blocked = len(sets) == 1 && certainlyBlocked(s, SetOf(&sets[0]))
	scaling.LoweredAt, _ = scalable.ReplicasLoweredAt(s.Resource)
	state.Scaling = scaling
	return nil
}

// Set is what a MachineSet shows.
type Set struct {
	// Generation and Observed show whether the MachineSet has acted on its replicas, and Replicas are these.
	Generation, Observed int64
	Replicas             int32
	// Machines is the number of Machines that the MachineSet counts.
	Machines int32
	// Deleting reports whether the MachineSet is being deleted.
	Deleting bool
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
		Deleting:  !set.DeletionTimestamp.IsZero(),
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
		read.Ending = !deployment.DeletionTimestamp.IsZero() || deleted.Has(OwnerOf(s.Machines[read.Name]))
	}
}

// setOrphans sets which Machines have lost their infrastructure object before it was provisioned. If the MachineSet
// controller gets no answer when it creates a Machine, it deletes the infrastructure object again, or it does so later, because
// its cache lacks the Machine (Cluster API: core/reconcilers/machineset/machineset_controller.go, createMachines and
// cleanupOrphanedBootstrapConfigsInfraMachines). The Machine controller then waits for that object forever
// (core/reconcilers/machine/machine_controller_phases.go, reconcileInfrastructure). Machines of an adopted MachineDeployment that
// serve no claim stay as they are.
func (s *Snapshot) setOrphans(ctx context.Context, clusters *clients.Clusters) {
	for i := range s.State.Machines {
		read := &s.State.Machines[i]
		waits := read.ProviderID == "" && read.Infrastructure.Status == metav1.ConditionFalse &&
			read.Infrastructure.Reason == clusterv1.MachineInfrastructureDoesNotExistReason
		others := scalable.Adopted(s.Resource) && read.Claim == "" && !read.Leaving
		if waits && !others && s.State.MayStall(*read) {
			read.InstanceGone = neverBoots(ctx, clusters, s.Machines[read.Name])
		}
	}
}

// OwnerOf returns the name of the MachineSet of a Machine, or of another controller; empty without one.
func OwnerOf(machine *clusterv1.Machine) string {
	if owner := metav1.GetControllerOfNoCopy(machine); owner != nil {
		return owner.Name
	}
	return ""
}
