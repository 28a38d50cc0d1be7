// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"context"
	"fmt"

	"github.com/samber/lo"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/internal/clients"
)

// Suspended reports whether the operator does not set the replicas of a scalable resource: it is paused, it is rolling
// out because a user has changed it, or another controller sets its replicas.
func (r *Resource) Suspended(ctx context.Context, clusters *clients.Clusters) (bool, error) {
	if r.Paused() {
		return true, nil
	}
	return r.kind.controlledByOthers(ctx, clusters, r)
}

// Paused reports whether the resource is paused, so that Cluster API does not reconcile it either.
func (r *Resource) Paused() bool {
	return annotations.HasPaused(r) || r.kind.fields(r.API()).paused
}

// MachineSuspended reports whether the operator changes nothing on a Machine: it, its scalable
// resource or the Cluster is paused. A Machine that is being deleted must not wait for the end
// of a rollout, which waits for the Machine.
func MachineSuspended(ctx context.Context, clusters *clients.Clusters, machine *clusterv1.Machine) (bool, error) {
	cluster := &clusterv1.Cluster{}
	if err := client.IgnoreNotFound(clusters.Management.GetClient().Get(ctx, clusters.Cluster, cluster)); err != nil {
		return false, fmt.Errorf("getting Cluster %s: %w", clusters.Cluster, err)
	}
	if lo.FromPtr(cluster.Spec.Paused) || annotations.HasPaused(machine) {
		return true, nil
	}
	resource, err := Get(ctx, clusters, clients.ResourceOf(machine))
	if err != nil || resource == nil || resource.kind != KindOfMachine(machine) {
		return false, err
	}
	if !machine.DeletionTimestamp.IsZero() {
		return resource.Paused(), nil
	}
	return resource.Suspended(ctx, clusters)
}
