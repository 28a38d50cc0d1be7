// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"context"
	"fmt"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
)

// IsCreating reports whether a MachineSet of a MachineDeployment is the one that creates its Machines.
func IsCreating(set *clusterv1.MachineSet) bool {
	return set.Annotations[clusterv1.DisableMachineCreateAnnotation] != "true"
}

// EndsFirst reports whether a MachineSet that should create Machines is being deleted and still has some. Until these
// no longer exist, neither it nor a successor creates any. Cluster API also deletes empty MachineSets, which do not
// count.
func EndsFirst(set *clusterv1.MachineSet) bool {
	return !set.DeletionTimestamp.IsZero() && IsCreating(set) && lo.FromPtr(set.Status.Replicas) > 0
}

// CreatesNothing reports whether a MachineDeployment creates no Machines, because it is being deleted, or the
// MachineSet that creates its Machines is. The MachineDeployment controller creates another MachineSet only when that
// one no longer exists (Cluster API: core/reconcilers/machinedeployment/mdutil/util.go, FindNewAndOldMachineSets).
func CreatesNothing(deployment *clusterv1.MachineDeployment, sets []clusterv1.MachineSet) bool {
	nothing := !deployment.DeletionTimestamp.IsZero()
	for i := range sets {
		nothing = nothing || EndsFirst(&sets[i])
	}
	return nothing
}

// Ending returns the UID of the resource of a name if it or its MachineSet is being deleted; empty if not. Such a
// resource creates no Machines while the Nodes of its present ones are drained. A resource without Machines does not
// count, because its successor can have the same name shortly.
func Ending(ctx context.Context, clusters *clients.Clusters, name string) (types.UID, error) {
	resource, err := Get(ctx, clusters, name)
	if err != nil || resource == nil {
		return "", err
	}
	nothing := !resource.GetDeletionTimestamp().IsZero()
	if deployment, is := resource.API().(*clusterv1.MachineDeployment); is {
		sets, err := MachineSets(ctx, clusters, name)
		if err != nil {
			return "", err
		}
		nothing = CreatesNothing(deployment, sets)
	}
	if !nothing {
		return "", nil
	}
	machines := &clusterv1.MachineList{}
	if err := clusters.Management.GetClient().List(ctx, machines, client.InNamespace(clusters.Cluster.Namespace),
		client.MatchingFields{clients.ResourceField: name}, client.HasLabels{v1alpha1.TemplateLabel}, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("listing the Machines of %s: %w", resource, err)
	}
	if len(machines.Items) == 0 {
		return "", nil
	}
	return resource.GetUID(), nil
}
