// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"context"
	"fmt"

	"github.com/samber/lo"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/link"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
)

// Observed is one scalable resource with its claims and Machines, as the caches
// have them.
type Observed struct {
	// Resource is nil if there is none of that name.
	Resource *clusterv1.MachineDeployment
	// Claims that name the resource.
	Claims []karpv1.NodeClaim
	// Machines of the resource by name.
	Machines map[string]*clusterv1.Machine
	// Plan is what is to be done.
	Plan link.Plan
}

// Observe reads a scalable resource from the caches and decides what is to be
// done. It returns nil if nothing may be: the Cluster or the resource is paused,
// or the Cluster does not exist.
func Observe(ctx context.Context, clusters *operator.Clusters, name string) (*Observed, error) {
	management := clusters.Management.GetClient()
	cluster := &clusterv1.Cluster{}
	if err := management.Get(ctx, clusters.Cluster, cluster); err != nil {
		return nil, client.IgnoreNotFound(fmt.Errorf("getting Cluster %s: %w", clusters.Cluster, err))
	}
	if lo.FromPtr(cluster.Spec.Paused) {
		return nil, nil
	}
	observed := &Observed{Machines: map[string]*clusterv1.Machine{}}
	resource := &clusterv1.MachineDeployment{}
	key := types.NamespacedName{Namespace: clusters.Cluster.Namespace, Name: name}
	if err := management.Get(ctx, key, resource); err == nil {
		if _, paused := resource.Annotations[clusterv1.PausedAnnotation]; paused || lo.FromPtr(resource.Spec.Paused) {
			return nil, nil
		}
		observed.Resource = resource
	} else if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("getting MachineDeployment %s: %w", key, err)
	}

	claims := &karpv1.NodeClaimList{}
	if err := clusters.Workload.GetClient().List(ctx, claims, client.MatchingFields{operator.NodeClaimResourceField: name}); err != nil {
		return nil, fmt.Errorf("listing the NodeClaims of MachineDeployment %s: %w", key, err)
	}
	observed.Claims = claims.Items
	machines := &clusterv1.MachineList{}
	if err := management.List(ctx, machines, client.MatchingFields{operator.MachineResourceField: name}); err != nil {
		return nil, fmt.Errorf("listing the Machines of MachineDeployment %s: %w", key, err)
	}
	for i := range machines.Items {
		observed.Machines[machines.Items[i].Name] = &machines.Items[i]
	}
	observed.Plan = link.Decide(link.State{
		Replicas: lo.FromPtr(resource.Spec.Replicas),
		Claims:   lo.Map(observed.Claims, func(claim karpv1.NodeClaim, _ int) link.Claim { return claimForLink(&claim) }),
		Machines: lo.Map(machines.Items, func(machine clusterv1.Machine, _ int) link.Machine { return machineForLink(&machine) }),
	})
	return observed, nil
}
