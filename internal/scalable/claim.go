// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// OfferingOfClaim returns the offering that a launched claim was given.
func OfferingOfClaim(claim *karpv1.NodeClaim) Offering {
	return Offering{
		InstanceType: claim.Labels[corev1.LabelInstanceTypeStable],
		Zone:         claim.Labels[corev1.LabelTopologyZone],
		CapacityType: claim.Labels[karpv1.CapacityTypeLabelKey],
	}
}

// NeedsMachine tells whether a claim is to be given a Machine if it has none.
// Only what core has persisted has effects: a claim asks for a Machine once it is
// Launched, and never again after its Node has registered.
func NeedsMachine(claim *karpv1.NodeClaim) bool {
	conditions := claim.StatusConditions()
	return claim.DeletionTimestamp.IsZero() &&
		conditions.Get(karpv1.ConditionTypeLaunched).IsTrue() &&
		!conditions.Get(karpv1.ConditionTypeRegistered).IsTrue()
}
