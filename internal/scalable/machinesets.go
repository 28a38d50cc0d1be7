// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"context"
	"fmt"
	"slices"

	"github.com/samber/lo"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/link"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
)

// severalSets returns the Scaling of a MachineDeployment that has Machines in an older
// MachineSet, see link.MachineSets; false if it has one MachineSet, or the others are empty.
func severalSets(sets []clusterv1.MachineSet, snap *Snapshot) (link.MachineSets, bool) {
	if snap.Resource == nil {
		return link.MachineSets{}, false
	}
	deployment := snap.Resource.API().(*clusterv1.MachineDeployment)
	scaling := link.MachineSets{Of: map[string]string{}, Observed: isObserved(deployment)}
	for _, machine := range snap.Machines {
		if owner := metav1.GetControllerOf(machine); owner != nil {
			scaling.Of[machine.Name] = owner.Name
		}
	}
	current := 0
	for i := range sets {
		set := link.Set{
			Name:     sets[i].Name,
			Replicas: lo.FromPtr(sets[i].Spec.Replicas),
			Current:  sets[i].Annotations[clusterv1.DisableMachineCreateAnnotation] != "true",
			Behind:   sets[i].DeletionTimestamp.IsZero() && sets[i].Status.ObservedGeneration < sets[i].Generation,
		}
		current += lo.Ternary(set.Current, 1, 0)
		scaling.Sets = append(scaling.Sets, set)
	}
	if current > 1 {
		// The MachineDeployment controller is about to say which one is current.
		for i := range scaling.Sets {
			scaling.Sets[i].Current, scaling.Sets[i].Behind = false, true
		}
	}
	// With another strategy, older MachineSets have no such mark, and are emptied.
	onDelete := deployment.Spec.Rollout.Strategy.Type == clusterv1.OnDeleteMachineDeploymentStrategyType
	return scaling, onDelete && hasOlder(scaling, sets)
}

// hasOlder reports whether there are Machines in a MachineSet that is not the current one,
// or is not known yet.
func hasOlder(scaling link.MachineSets, sets []clusterv1.MachineSet) bool {
	if len(sets) == 0 {
		return false // it is about to get its first one
	}
	if unknown := lo.SomeBy(lo.Values(scaling.Of), func(name string) bool {
		return !slices.ContainsFunc(scaling.Sets, func(set link.Set) bool { return set.Name == name })
	}); unknown {
		return true
	}
	used := lo.SliceToMap(lo.Values(scaling.Of), func(name string) (string, bool) { return name, true })
	return lo.SomeBy(sets, func(set clusterv1.MachineSet) bool {
		known, _ := lo.Find(scaling.Sets, func(known link.Set) bool { return known.Name == set.Name })
		return !known.Current && (known.Replicas > 0 || lo.FromPtr(set.Status.Replicas) > 0 || used[set.Name])
	})
}

func isObserved(deployment *clusterv1.MachineDeployment) bool {
	return deployment.Status.ObservedGeneration >= deployment.Generation
}

// scaleEachSet takes the next step of link.MachineSets that is not one of replicas: it puts
// hooks on Machines that leave, and then sets the replicas of the MachineSets.
func scaleEachSet(ctx context.Context, clusters *operator.Clusters, snap *Snapshot) error {
	if snap.ClusterDeleting {
		return nil // Cluster API deletes all Machines, and nothing may hold them
	}
	for _, machine := range snap.Machines {
		if err := holdInstance(ctx, clusters.Management.GetClient(), machine); err != nil {
			return err
		}
	}
	// Until the MachineDeployment controller has acted on what it has, it could overwrite
	// what is written here.
	deployment := &clusterv1.MachineDeployment{}
	if err := clusters.Management.GetAPIReader().Get(ctx, snap.Resource.Key(), deployment); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("getting %s: %w", snap.Resource, err))
	}
	if deployment.UID != snap.Resource.GetUID() || !isObserved(deployment) || annotations.HasPaused(deployment) || lo.FromPtr(deployment.Spec.Paused) {
		return nil // its event brings the next reconcile
	}
	return setTargets(ctx, clusters.Management.GetClient(), snap, lo.FromPtr(deployment.Spec.Replicas))
}

// setTargets sets the planned replicas of the MachineSets, which together never get more than
// atMost by that.
func setTargets(ctx context.Context, management client.Client, snap *Snapshot, atMost int32) error {
	sets := snap.machineSets
	sum := lo.SumBy(sets, func(set clusterv1.MachineSet) int32 { return lo.FromPtr(set.Spec.Replicas) })
	for i := range sets {
		has := lo.FromPtr(sets[i].Spec.Replicas)
		target, known := snap.Plan.Sets[sets[i].Name]
		if !known || target == has || target > has && sum-has+target > atMost {
			continue
		}
		if written, err := patchSetReplicas(ctx, management, &sets[i], target); err != nil || !written {
			return err
		}
		sum += target - has
	}
	return nil
}

// patchSetReplicas sets the replicas of a MachineSet. It returns false if the MachineSet has
// changed: its event brings the next reconcile.
func patchSetReplicas(ctx context.Context, management client.Client, set *clusterv1.MachineSet, replicas int32) (bool, error) {
	changed := set.DeepCopy()
	changed.Spec.Replicas = &replicas
	err := management.Patch(ctx, changed, client.MergeFromWithOptions(set, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("patching MachineSet %s: %w", client.ObjectKeyFromObject(set), err)
	}
	log.FromContext(ctx).Info("set replicas", "MachineSet", client.ObjectKeyFromObject(set), "from", lo.FromPtr(set.Spec.Replicas), "to", replicas)
	return true, nil
}

// holdInstance puts a hook on a Machine that leaves, with which it exists until it is let
// go. One that has been let go has lost its pre-drain hook, too.
func holdInstance(ctx context.Context, management client.Client, machine *clusterv1.Machine) error {
	_, waits := machine.Annotations[v1alpha1.DrainHookAnnotation]
	if !IsLeaving(machine) || HoldsInstance(machine) || !machine.DeletionTimestamp.IsZero() && !waits {
		return nil
	}
	holding := machine.DeepCopy()
	metav1.SetMetaDataAnnotation(&holding.ObjectMeta, v1alpha1.TerminateHookAnnotation, "")
	err := management.Patch(ctx, holding, client.MergeFromWithOptions(machine, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // its event brings the next reconcile
	}
	if err != nil {
		return fmt.Errorf("adding a hook to Machine %s: %w", client.ObjectKeyFromObject(machine), err)
	}
	return nil
}
