// SPDX-License-Identifier: Apache-2.0

package interruption

import (
	"context"
	"fmt"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
)

// claimOf returns the claim of a Node; nil if it has none. Usually that is the only claim with the
// provider ID of the Node. If several claims have this ID, after a user has written it, or none has, the
// Machine of the Node decides, because its link has the UID of the claim. claimOf also returns all claims
// with the ID.
func (r *Reconciler) claimOf(ctx context.Context, node *corev1.Node) (claim *karpv1.NodeClaim, sharing []karpv1.NodeClaim, err error) {
	workload := r.clusters.Workload.GetClient()
	claims := &karpv1.NodeClaimList{}
	if err := workload.List(ctx, claims, client.MatchingFields{clients.NodeClaimProviderIDField: node.Spec.ProviderID}); err != nil {
		return nil, nil, fmt.Errorf("listing the NodeClaims of Node %s: %w", node.Name, err)
	}
	if len(claims.Items) == 1 {
		return &claims.Items[0], claims.Items, nil
	}
	machines, err := r.machinesOf(ctx, node, claims.Items)
	if err != nil {
		return nil, nil, err
	}
	for i := range machines {
		linked := &karpv1.NodeClaim{}
		err := workload.Get(ctx, types.NamespacedName{Name: lifecycle.ClaimName(&machines[i])}, linked)
		if client.IgnoreNotFound(err) != nil {
			return nil, nil, fmt.Errorf("getting the NodeClaim of Machine %s: %w", client.ObjectKeyFromObject(&machines[i]), err)
		}
		if err == nil && linked.UID == lifecycle.ClaimUID(&machines[i]) {
			return linked, claims.Items, nil
		}
	}
	return nil, claims.Items, nil
}

// machinesOf returns the Machines with a link whose Node it is, among those with its provider ID and those
// of the given claims: a provider can have changed the ID of the Machine.
func (r *Reconciler) machinesOf(ctx context.Context, node *corev1.Node, claims []karpv1.NodeClaim) ([]clusterv1.Machine, error) {
	selectors := []client.MatchingFields{{clients.MachineProviderIDField: node.Spec.ProviderID}}
	for i := range claims {
		selectors = append(selectors, client.MatchingFields{clients.MachineClaimField: string(claims[i].UID)})
	}
	var all []clusterv1.Machine
	for _, selector := range selectors {
		machines := &clusterv1.MachineList{}
		if err := r.clusters.Management.GetClient().List(ctx, machines, selector); err != nil {
			return nil, fmt.Errorf("listing the Machines of Node %s: %w", node.Name, err)
		}
		all = append(all, machines.Items...)
	}
	return lo.Filter(all, func(machine clusterv1.Machine, _ int) bool {
		return machine.Status.NodeRef.Name == node.Name && lifecycle.ClaimUID(&machine) != ""
	}), nil
}
