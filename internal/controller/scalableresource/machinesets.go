// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"fmt"

	"github.com/samber/lo"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/precondition"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// scaleMachineSets passes raised replicas on to the MachineSet while Machines leave, and if there are as many Machines as
// replicas, because Cluster API has created one too many.
//
// The MachineDeployment controller would do the same, but slowly. In one reconcile, of which there
// is one a second, it raises the MachineSet by no more than its own replicas exceed the number of
// all Machines, leaving ones included (Cluster API:
// core/reconcilers/machinedeployment/mdutil/util.go, NewMSNewReplicas). While ten Machines leave,
// a new claim would wait for eleven seconds. If replicas equal the number of Machines, it raises the MachineSet by none,
// which would then delete a Machine, by preference one that is booting.
//
// It reads the MachineDeployment from the API server first, so that the MachineSet never gets more
// than the MachineDeployment has. No other controller changes its replicas meanwhile. The
// MachineDeployment controller must have observed these replicas: if its cache had lower ones, it
// would lower the MachineSet again, which would delete Machines that exist by then.
func (r *Reconciler) scaleMachineSets(ctx context.Context, snap *decided, replicas int32) error {
	if snap.State.ClusterDeleting || !snap.Resource.Kind().HasMachineSets() {
		return nil
	}
	if snap.Plan.Sets != nil {
		return r.scaleEachSet(ctx, snap)
	}
	if len(snap.Machines) < int(replicas) && !lo.SomeBy(lo.Values(snap.Machines), lifecycle.IsLeaving) {
		return nil
	}
	sets, err := scalable.MachineSets(ctx, r.clusters, snap.Name)
	if err != nil || len(sets) != 1 || lo.FromPtr(sets[0].Spec.Replicas) >= replicas {
		return err
	}
	deployment := &clusterv1.MachineDeployment{}
	if err := r.clusters.Management.GetAPIReader().Get(ctx, snap.Resource.Key(), deployment); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("getting %s: %w", snap.Resource, err))
	}
	if deployment.UID != snap.Resource.GetUID() || lo.FromPtr(deployment.Spec.Replicas) != replicas ||
		deployment.Status.ObservedGeneration < deployment.Generation ||
		annotations.HasPaused(deployment) || lo.FromPtr(deployment.Spec.Paused) {
		return nil // its event triggers the next reconcile
	}
	return r.setMachineSetReplicas(ctx, &sets[0], replicas)
}

// scaleEachSet takes those steps of planner.MachineSets that update does not take: it adds hooks to
// leaving Machines, and then sets the replicas of the MachineSets.
func (r *Reconciler) scaleEachSet(ctx context.Context, snap *decided) error {
	for _, machine := range snap.Machines {
		// Without its hook, the Machine could disappear before the MachineDeployment's replicas are
		// lowered.
		if err := lifecycle.HoldInstance(ctx, r.clusters.Management.GetClient(), machine); err != nil {
			return err
		}
	}
	// Until the MachineDeployment controller has acted on its replicas, it could overwrite those of
	// the MachineSets.
	deployment := &clusterv1.MachineDeployment{}
	if err := r.clusters.Management.GetAPIReader().Get(ctx, snap.Resource.Key(), deployment); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("getting %s: %w", snap.Resource, err))
	}
	if deployment.UID != snap.Resource.GetUID() || !scalable.IsObserved(deployment) || annotations.HasPaused(deployment) || lo.FromPtr(deployment.Spec.Paused) {
		return nil // its event triggers the next reconcile
	}
	return r.setTargets(ctx, snap, lo.FromPtr(deployment.Spec.Replicas))
}

// setTargets sets the planned replicas of the MachineSets. It raises none if their sum would exceed
// atMost.
func (r *Reconciler) setTargets(ctx context.Context, snap *decided, atMost int32) error {
	sets := snap.MachineSets
	sum := lo.SumBy(sets, func(set clusterv1.MachineSet) int32 { return lo.FromPtr(set.Spec.Replicas) })
	for i := range sets {
		has := lo.FromPtr(sets[i].Spec.Replicas)
		target, known := snap.Plan.Sets[sets[i].Name]
		if !known || target == has || target > has && sum-has+target > atMost {
			continue
		}
		if err := r.setMachineSetReplicas(ctx, &sets[i], target); err != nil {
			return err
		}
		sum += target - has
	}
	return nil
}

// setMachineSetReplicas sets the replicas of a MachineSet. It returns a conflict if the MachineSet has
// changed.
func (r *Reconciler) setMachineSetReplicas(ctx context.Context, set *clusterv1.MachineSet, replicas int32) error {
	changed := set.DeepCopy()
	changed.Spec.Replicas = &replicas
	if err := precondition.Write(ctx, r.clusters.Management.GetClient(), set, changed, "patching"); err != nil {
		return err
	}
	log.FromContext(ctx).Info("set replicas", "MachineSet", client.ObjectKeyFromObject(set), "from", lo.FromPtr(set.Spec.Replicas), "to", replicas)
	return nil
}
