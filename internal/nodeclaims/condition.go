// SPDX-License-Identifier: Apache-2.0

package nodeclaims

import (
	"github.com/awslabs/operatorpkg/status"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// ConditionOf returns a condition of a claim, which must not be changed; nil if the claim lacks it.
// Unlike StatusConditions, it allocates nothing and does not add conditions that the claim lacks. So it
// can be used with claims that are shared with the cache, and for each claim of a large list.
func ConditionOf(claim *karpv1.NodeClaim, kind string) *status.Condition {
	for i := range claim.Status.Conditions {
		if claim.Status.Conditions[i].Type == kind {
			return &claim.Status.Conditions[i]
		}
	}
	return nil
}

// NeedsMachine reports whether a claim should get a Machine if it has none. Only what core has
// stored has effects: a claim needs a Machine from the condition Launched on, until its Node has
// registered.
func NeedsMachine(claim *karpv1.NodeClaim) bool {
	return claim.DeletionTimestamp.IsZero() &&
		ConditionOf(claim, karpv1.ConditionTypeLaunched).IsTrue() &&
		!ConditionOf(claim, karpv1.ConditionTypeRegistered).IsTrue()
}

// IsStalled reports whether a claim has the condition MachineAvailable because its launch is stalled.
func IsStalled(claim *karpv1.NodeClaim) bool {
	reason := unknownReason(claim)
	return reason == v1alpha1.ReasonBlocked || reason == v1alpha1.ReasonNoProgress
}

// IsRejected reports whether no scalable resource can be created for a claim.
func IsRejected(claim *karpv1.NodeClaim) bool { return unknownReason(claim) == v1alpha1.ReasonRejected }

// HasWaited reports whether a claim has the condition MachineAvailable because it waited for
// Cluster API. It is True once the claim has its Machine.
func HasWaited(claim *karpv1.NodeClaim) bool {
	return IsStalled(claim) || IsRejected(claim) || unknownReason(claim) == v1alpha1.ReasonResumed
}

// unknownReason returns the reason of the claim's condition MachineAvailable while that is
// Unknown.
func unknownReason(claim *karpv1.NodeClaim) string {
	condition := ConditionOf(claim, v1alpha1.ConditionMachineAvailable)
	if condition == nil || !condition.IsUnknown() {
		return ""
	}
	return condition.Reason
}
