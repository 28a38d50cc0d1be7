// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"fmt"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// machinesWith returns the Machines of a provider ID: those that have it, those of the claim with this
// provisional ID, or else that of the claim that has kept it.
func (c *CloudProvider) machinesWith(ctx context.Context, providerID string) ([]clusterv1.Machine, error) {
	cached := c.clusters.Management.GetClient()
	if uid, provisional := planner.ParseProvisionalID(providerID); provisional {
		return c.machines(ctx, cached, client.MatchingFields{clients.MachineClaimField: string(uid)})
	}
	machines, err := c.machines(ctx, cached, client.MatchingFields{clients.MachineProviderIDField: providerID})
	if err != nil || len(machines) > 0 {
		return machines, err
	}
	claims := &karpv1.NodeClaimList{}
	if err := c.clusters.Workload.GetClient().List(ctx, claims, client.MatchingFields{clients.NodeClaimProviderIDField: providerID}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing NodeClaims with provider ID %s: %w", providerID, err)
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		linked, err := c.machines(ctx, cached, client.MatchingFields{clients.MachineClaimField: string(claim.UID)})
		if err != nil {
			return nil, err
		}
		machines = append(machines, lo.Filter(linked, func(_ clusterv1.Machine, i int) bool { return hasKeptID(claim, &linked[i]) })...)
	}
	return machines, nil
}

// hasKeptID reports whether a claim has the ID with which the Node of a Machine was registered, also if
// the Machine has got another one since (package providerid).
func hasKeptID(claim *karpv1.NodeClaim, machine *clusterv1.Machine) bool {
	_, provisional := planner.ParseProvisionalID(claim.Status.ProviderID)
	return lifecycle.HasNodeOf(machine, claim) && claim.Status.ProviderID != "" && !provisional
}

// fromMachine returns the claim that a Machine serves, with the fields that follow from
// the Machine. Core identifies such claims by provider ID.
func fromMachine(machine *clusterv1.Machine) *karpv1.NodeClaim {
	offering := scalable.OfferingOf(machine)
	claim := &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: lifecycle.ClaimName(machine),
			UID:  lifecycle.ClaimUID(machine),
			Labels: map[string]string{
				corev1.LabelInstanceTypeStable: offering.InstanceType,
				karpv1.CapacityTypeLabelKey:    offering.CapacityType,
			},
			CreationTimestamp: machine.CreationTimestamp,
			DeletionTimestamp: machine.DeletionTimestamp,
		},
		Status: karpv1.NodeClaimStatus{
			ProviderID: machine.Spec.ProviderID,
			NodeName:   machine.Status.NodeRef.Name,
		},
	}
	if offering.Zone != "" {
		claim.Labels[corev1.LabelTopologyZone] = offering.Zone
	}
	if claim.Status.ProviderID == "" {
		claim.Status.ProviderID = planner.ProvisionalID(claim.UID)
	}
	return claim
}
