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
		!scalable.IsObserved(deployment) ||
		annotations.HasPaused(deployment) || lo.FromPtr(deployment.Spec.Paused) {
		return nil // its event triggers the next reconcile
	}
	return r.setMachineSetReplicas(ctx, &sets[0], replicas)
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
