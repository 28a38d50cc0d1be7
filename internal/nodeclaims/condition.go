// SPDX-License-Identifier: Apache-2.0

package nodeclaims

import (
	"context"

	"github.com/awslabs/operatorpkg/status"
	"github.com/samber/lo"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/precondition"
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

// IsLaunched reports whether core has stored the launch of a claim.
func IsLaunched(claim *karpv1.NodeClaim) bool {
	return ConditionOf(claim, karpv1.ConditionTypeLaunched).IsTrue()
}

// IsRegistered reports whether core has registered the Node of a claim.
func IsRegistered(claim *karpv1.NodeClaim) bool {
	return ConditionOf(claim, karpv1.ConditionTypeRegistered).IsTrue()
}

// NeedsMachine reports whether a claim should get a Machine if it has none. Only what core has
// stored has effects: a claim needs a Machine from the condition Launched on, until its Node has
// registered.
func NeedsMachine(claim *karpv1.NodeClaim) bool {
	return claim.DeletionTimestamp.IsZero() && IsLaunched(claim) && !IsRegistered(claim)
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

// Wait and Ready write the condition MachineReady, and the functions before them the condition MachineAvailable.
// SetProviderID writes both. launchTimeoutSeconds counts from the last transition of MachineAvailable.

// maxMessage is the maximum length of a condition's message.
const maxMessage = 1024

// Stall writes that Cluster API or a provider does not act on the launch of a claim, unless the claim has
// that. It reports whether it has written.
func Stall(ctx context.Context, workload client.Client, claim *karpv1.NodeClaim, reason, message string) (bool, error) {
	return set(ctx, workload, claim, "reporting the stall of", func(conditions status.ConditionSet) bool {
		return conditions.SetUnknownWithReason(v1alpha1.ConditionMachineAvailable, reason, message)
	})
}

// Resume writes that the stall of a claim has ended.
func Resume(ctx context.Context, workload client.Client, claim *karpv1.NodeClaim) error {
	changed := claim.DeepCopy()
	waitFromNow(changed, v1alpha1.ReasonResumed, "Cluster API acts on the Machine of this NodeClaim again")
	return writeStatus(ctx, workload, claim, changed, "reporting the end of the stall of")
}

// Reject writes why no scalable resource can be created or scaled for a claim, unless the claim has a reason
// for that already. If that does not change within launchTimeoutSeconds, its launch has failed.
func Reject(ctx context.Context, workload client.Client, claim *karpv1.NodeClaim, reason error) error {
	_, err := set(ctx, workload, claim, "reporting the rejection of", func(conditions status.ConditionSet) bool {
		return !IsRejected(claim) && conditions.SetUnknownWithReason(v1alpha1.ConditionMachineAvailable, v1alpha1.ReasonRejected, lo.Substring(reason.Error(), 0, maxMessage))
	})
	return err
}

// Fail writes that the launch of a claim has failed, unless the claim has that.
func Fail(ctx context.Context, workload client.Client, claim *karpv1.NodeClaim, reason, message string) error {
	_, err := set(ctx, workload, claim, "reporting the failure of", func(conditions status.ConditionSet) bool {
		return conditions.SetFalse(v1alpha1.ConditionMachineAvailable, reason, message)
	})
	return err
}

// Wait writes what the Machine of a claim waits for.
func Wait(ctx context.Context, workload client.Client, claim *karpv1.NodeClaim, reason, message string) error {
	_, err := set(ctx, workload, claim, "reporting what the Machine waits for on", func(conditions status.ConditionSet) bool {
		return conditions.SetFalse(v1alpha1.ConditionMachineReady, reason, lo.Substring(message, 0, maxMessage))
	})
	return err
}

// Ready writes that the Machine of a claim waits for nothing any more.
func Ready(ctx context.Context, workload client.Client, claim *karpv1.NodeClaim, machine string) error {
	_, err := set(ctx, workload, claim, "reporting the Machine of", func(conditions status.ConditionSet) bool {
		return setReady(conditions, machine)
	})
	return err
}

func setReady(conditions status.ConditionSet, machine string) bool {
	return conditions.SetTrueWithReason(v1alpha1.ConditionMachineReady, v1alpha1.ReasonMachineProvisioned, "Machine "+machine+" has its provider ID")
}

// waitFromNow sets the condition to Unknown. It is False in between, so that the time of its transition is now.
func waitFromNow(claim *karpv1.NodeClaim, reason, message string) {
	conditions := claim.StatusConditions()
	conditions.SetFalse(v1alpha1.ConditionMachineAvailable, reason, message)
	conditions.SetUnknownWithReason(v1alpha1.ConditionMachineAvailable, reason, message)
}

// set writes what a function changes, and reports whether it has written.
func set(ctx context.Context, workload client.Client, claim *karpv1.NodeClaim, doing string, change func(status.ConditionSet) bool) (bool, error) {
	changed := claim.DeepCopy()
	if !change(changed.StatusConditions()) {
		return false, nil
	}
	err := writeStatus(ctx, workload, claim, changed, doing)
	return err == nil, err
}

// write writes the labels and annotations of a claim.
func write(ctx context.Context, workload client.Client, claim, changed *karpv1.NodeClaim, doing string) error {
	err := precondition.Write(ctx, workload, claim, changed, doing)
	if err == nil {
		*claim = *changed
	}
	return err
}

// writeStatus writes the status of a claim.
func writeStatus(ctx context.Context, workload client.Client, claim, changed *karpv1.NodeClaim, doing string) error {
	err := precondition.WriteStatus(ctx, workload, claim, changed, doing)
	if err == nil {
		*claim = *changed
	}
	return err
}
