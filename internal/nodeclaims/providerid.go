// SPDX-License-Identifier: Apache-2.0

package nodeclaims

import (
	"context"
	"fmt"

	"github.com/awslabs/operatorpkg/status"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
)

// SetProviderID gives a claim the provider ID of its Machine, unless another claim has it: two claims with one ID make
// Karpenter core fail (pkg/controllers/state/cluster.go, cleanupNodeClaim). The condition MachineReady names the Machine. If
// the claim has waited for Cluster API, a limit, or an offering that failed, its condition MachineAvailable becomes True.
// It reports whether it has written, and returns a conflict if the claim has changed.
func SetProviderID(ctx context.Context, workload client.Client, claim *karpv1.NodeClaim, machine, want string) (bool, error) {
	others := &karpv1.NodeClaimList{}
	if err := workload.List(ctx, others, client.MatchingFields{clients.NodeClaimProviderIDField: want}, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("listing NodeClaims with provider ID %s: %w", want, err)
	}
	for i := range others.Items {
		if other := &others.Items[i]; other.UID != claim.UID {
			if !other.DeletionTimestamp.IsZero() {
				return false, nil // the event of its end triggers the next reconcile
			}
			return false, fmt.Errorf("NodeClaim %s cannot have provider ID %s: NodeClaim %s has it", claim.Name, want, other.Name)
		}
	}
	changed := claim.DeepCopy()
	changed.Status.ProviderID = want
	conditions := changed.StatusConditions()
	setReady(conditions, machine)
	if HasWaited(claim) || ConditionOf(claim, v1alpha1.ConditionMachineAvailable).IsFalse() {
		conditions.SetTrue(v1alpha1.ConditionMachineAvailable)
	}
	if err := writeStatus(ctx, workload, claim, changed, "setting provider ID "+want+" of"); err != nil {
		return false, err
	}
	log.FromContext(ctx).Info("set provider ID", "NodeClaim", claim.Name, "provider-id", want)
	return true, nil
}

// ResetProviderID gives a claim its provisional ID, if it has another one. The claim must not be registered:
// core finds the Node by the ID, and drains it. The condition MachineReady is removed, because it names the Machine.
func ResetProviderID(ctx context.Context, workload client.Client, claim *karpv1.NodeClaim) error {
	if claim.Status.ProviderID == planner.ProvisionalID(claim.UID) {
		return nil
	}
	if IsRegistered(claim) {
		return fmt.Errorf("NodeClaim %s keeps its provider ID, because its Node is registered", claim.Name)
	}
	changed := claim.DeepCopy()
	changed.Status.ProviderID = planner.ProvisionalID(claim.UID)
	if err := changed.StatusConditions().Clear(v1alpha1.ConditionMachineReady); err != nil {
		return err
	}
	return writeStatus(ctx, workload, claim, changed, "resetting the provider ID of")
}

// ReportProviderID writes on a registered claim that its Machine has another provider ID, and what that
// contradicts, or, if contradiction is empty, that it has the same one. It reports whether it has written: a
// claim whose Machine never had another ID gets no condition.
func ReportProviderID(ctx context.Context, workload client.Client, claim *karpv1.NodeClaim, contradiction string) (bool, error) {
	if contradiction == "" && ConditionOf(claim, v1alpha1.ConditionProviderIDUnchanged) == nil {
		return false, nil
	}
	return set(ctx, workload, claim, "reporting the provider ID of", func(conditions status.ConditionSet) bool {
		if contradiction == "" {
			return conditions.SetTrue(v1alpha1.ConditionProviderIDUnchanged)
		}
		return conditions.SetFalse(v1alpha1.ConditionProviderIDUnchanged, v1alpha1.ReasonProviderIDChanged, contradiction)
	})
}
