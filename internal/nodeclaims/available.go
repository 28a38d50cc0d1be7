// SPDX-License-Identifier: Apache-2.0

package nodeclaims

import (
	"context"

	"github.com/samber/lo"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/precondition"
)

// The functions below write the condition MachineAvailable, as do Relaunch and SetProviderID.
// launchTimeoutSeconds counts from its last transition.

// maxMessage is the maximum length of a condition's message.
const maxMessage = 1024

// Stall writes that Cluster API or a provider does not act on the launch of a claim, unless the claim has
// that. It reports whether it has written.
func Stall(ctx context.Context, workload client.Client, claim *karpv1.NodeClaim, reason, message string) (bool, error) {
	changed := claim.DeepCopy()
	if !changed.StatusConditions().SetUnknownWithReason(v1alpha1.ConditionMachineAvailable, reason, message) {
		return false, nil
	}
	err := precondition.WriteStatus(ctx, workload, claim, changed, "reporting the stall of")
	return err == nil, err
}

// Resume writes that the stall of a claim has ended.
func Resume(ctx context.Context, workload client.Client, claim *karpv1.NodeClaim) error {
	changed := claim.DeepCopy()
	waitFromNow(changed, v1alpha1.ReasonResumed, "Cluster API acts on the Machine of this NodeClaim again")
	return precondition.WriteStatus(ctx, workload, claim, changed, "reporting the end of the stall of")
}

// Reject writes why no scalable resource can be created or scaled for a claim, unless the claim has a reason
// for that already. If that does not change within launchTimeoutSeconds, its launch has failed.
func Reject(ctx context.Context, workload client.Client, claim *karpv1.NodeClaim, reason error) error {
	changed := claim.DeepCopy()
	if IsRejected(claim) || !changed.StatusConditions().SetUnknownWithReason(v1alpha1.ConditionMachineAvailable, v1alpha1.ReasonRejected, lo.Substring(reason.Error(), 0, maxMessage)) {
		return nil
	}
	return precondition.WriteStatus(ctx, workload, claim, changed, "reporting the rejection of")
}

// Fail writes that the launch of a claim has failed, unless the claim has that.
func Fail(ctx context.Context, workload client.Client, claim *karpv1.NodeClaim, reason, message string) error {
	changed := claim.DeepCopy()
	if !changed.StatusConditions().SetFalse(v1alpha1.ConditionMachineAvailable, reason, message) {
		return nil
	}
	return precondition.WriteStatus(ctx, workload, claim, changed, "reporting the failure of")
}

// waitFromNow sets the condition to Unknown. It is False in between, so that the time of its transition is now.
func waitFromNow(claim *karpv1.NodeClaim, reason, message string) {
	conditions := claim.StatusConditions()
	conditions.SetFalse(v1alpha1.ConditionMachineAvailable, reason, message)
	conditions.SetUnknownWithReason(v1alpha1.ConditionMachineAvailable, reason, message)
}
