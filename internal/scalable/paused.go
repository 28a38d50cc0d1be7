// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"context"
	"fmt"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/internal/operator"
)

// ResourcePaused tells whether a scalable resource itself is paused.
func ResourcePaused(resource *clusterv1.MachineDeployment) bool {
	return annotations.HasPaused(resource) || lo.FromPtr(resource.Spec.Paused)
}

// MachinePaused tells whether a Machine is not to be touched: it, its scalable
// resource or the Cluster is paused, or an adopted resource is rolling out.
func MachinePaused(ctx context.Context, clusters *operator.Clusters, machine *clusterv1.Machine) (bool, error) {
	management := clusters.Management.GetClient()
	cluster, resource := &clusterv1.Cluster{}, &clusterv1.MachineDeployment{}
	if err := client.IgnoreNotFound(management.Get(ctx, clusters.Cluster, cluster)); err != nil {
		return false, fmt.Errorf("getting Cluster %s: %w", clusters.Cluster, err)
	}
	key := types.NamespacedName{Namespace: machine.Namespace, Name: machine.Labels[clusterv1.MachineDeploymentNameLabel]}
	if err := client.IgnoreNotFound(management.Get(ctx, key, resource)); err != nil {
		return false, fmt.Errorf("getting MachineDeployment %s: %w", key, err)
	}
	if lo.FromPtr(cluster.Spec.Paused) || ResourcePaused(resource) || annotations.HasPaused(machine) {
		return true, nil
	}
	return IsRollingOut(ctx, clusters, resource)
}

// IsRollingOut tells whether an adopted resource is rolling out, see RollingOut.
func IsRollingOut(ctx context.Context, clusters *operator.Clusters, resource *clusterv1.MachineDeployment) (bool, error) {
	if !Adopted(resource) {
		return false, nil
	}
	sets := &clusterv1.MachineSetList{}
	if err := clusters.Management.GetClient().List(ctx, sets, client.MatchingFields{operator.ResourceField: resource.Name}); err != nil {
		return false, fmt.Errorf("listing the MachineSets of MachineDeployment %s: %w", resource.Name, err)
	}
	return RollingOut(resource, sets.Items), nil
}
