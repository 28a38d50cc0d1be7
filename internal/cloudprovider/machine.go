// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

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
