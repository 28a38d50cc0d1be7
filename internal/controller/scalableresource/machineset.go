// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"fmt"

	"github.com/samber/lo"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// passOn gives raised replicas to the MachineSet while Machines leave.
//
// The MachineDeployment controller would do that, but slowly: what it adds in one
// reconcile, of which there is one a second, is what it has more than the
// MachineSet has Machines, leaving ones included (Cluster API:
// core/reconcilers/machinedeployment/mdutil/util.go, NewMSNewReplicas). With ten
// Machines leaving, one new claim would wait for eleven seconds.
//
// The MachineDeployment is read from the API server first, so that the MachineSet
// never gets more than that has; nobody else changes its replicas meanwhile. This
// only saves time: if it does not come to be, the MachineDeployment controller
// gets there.
func (r *Reconciler) passOn(ctx context.Context, observed *scalable.Observed, replicas int32) error {
	leaving := lo.CountBy(lo.Values(observed.Machines), scalable.Leaving)
	if leaving == 0 || len(observed.MachineSets) != 1 || lo.FromPtr(observed.MachineSets[0].Spec.Replicas) >= replicas {
		return nil
	}
	resource, set := &clusterv1.MachineDeployment{}, &observed.MachineSets[0]
	if err := r.clusters.Management.GetAPIReader().Get(ctx, client.ObjectKeyFromObject(observed.Resource), resource); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("getting MachineDeployment %s: %w", client.ObjectKeyFromObject(observed.Resource), err))
	}
	if lo.FromPtr(resource.Spec.Replicas) != replicas || scalable.ResourcePaused(resource) {
		return nil // its event brings the next reconcile
	}
	raised := set.DeepCopy()
	raised.Spec.Replicas = &replicas
	if err := r.clusters.Management.GetClient().Patch(ctx, raised, client.MergeFromWithOptions(set, client.MergeFromWithOptimisticLock{})); err != nil {
		return ignoreConflict(client.IgnoreNotFound(fmt.Errorf("patching MachineSet %s: %w", client.ObjectKeyFromObject(set), err)))
	}
	log.FromContext(ctx).Info("set replicas", "MachineSet", client.ObjectKeyFromObject(set), "from", lo.FromPtr(set.Spec.Replicas), "to", replicas)
	return nil
}
