// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
)

// NeedsMachine reports whether a claim should get a Machine if it has none. Only what core has
// stored has effects: a claim needs a Machine from the condition Launched on, until its Node has
// registered.
func NeedsMachine(claim *karpv1.NodeClaim) bool {
	return claim.DeletionTimestamp.IsZero() &&
		operator.ConditionOf(claim, karpv1.ConditionTypeLaunched).IsTrue() &&
		!operator.ConditionOf(claim, karpv1.ConditionTypeRegistered).IsTrue()
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
	condition := operator.ConditionOf(claim, v1alpha1.ConditionMachineAvailable)
	if condition == nil || !condition.IsUnknown() {
		return ""
	}
	return condition.Reason
}

// needsMachine reports whether a claim should get a Machine if it has none. A claim that exceeds a
// limit gets none, nor does one of another or of a suspended resource, or of a Cluster that is being deleted.
func (s *Snapshot) needsMachine(claim *karpv1.NodeClaim) bool {
	return NeedsMachine(claim) && !s.exceeding.Has(claim.UID) && !s.nameTaken(claim) && !s.ClusterDeleting && !s.Suspended
}

// Waits reports whether a claim should get a Machine and has none.
func (s *Snapshot) Waits(claim *karpv1.NodeClaim) bool {
	return s.needsMachine(claim) && s.Plan.Served[claim.UID] == ""
}

// EndsWithoutMachine reports whether a claim has no Machine and never gets one, because its Cluster
// is being deleted.
func (s *Snapshot) EndsWithoutMachine(claim *karpv1.NodeClaim) bool {
	return s.ClusterDeleting && NeedsMachine(claim) && s.Plan.Served[claim.UID] == ""
}
