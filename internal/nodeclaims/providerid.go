// SPDX-License-Identifier: Apache-2.0

package nodeclaims

import (
	"context"
	"fmt"

	"github.com/awslabs/operatorpkg/status"
	"gomodules.xyz/jsonpatch/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/karpenter/pkg/apis"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/precondition"
)

// SetProviderID gives a claim the provider ID of its Machine, unless another claim has it: two claims with one ID make
// Karpenter core fail (pkg/controllers/state/cluster.go, cleanupNodeClaim). It returns a conflict if the
// claim has changed.
func SetProviderID(ctx context.Context, workload client.Client, claim *karpv1.NodeClaim, want string) error {
	others := &karpv1.NodeClaimList{}
	if err := workload.List(ctx, others, client.MatchingFields{clients.NodeClaimProviderIDField: want}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing NodeClaims with provider ID %s: %w", want, err)
	}
	for i := range others.Items {
		if other := &others.Items[i]; other.UID != claim.UID {
			if !other.DeletionTimestamp.IsZero() {
				return nil // the event of its end triggers the next reconcile
			}
			return fmt.Errorf("NodeClaim %s cannot have provider ID %s: NodeClaim %s has it", claim.Name, want, other.Name)
		}
	}
	changed := claim.DeepCopy()
	changed.Status.ProviderID = want
	patch, err := patchOf(claim, changed)
	if err != nil {
		return err
	}
	claims := schema.GroupResource{Group: apis.Group, Resource: "nodeclaims"}
	err = precondition.Conflict(claims, claim, "setting provider ID "+want+" of", workload.Status().Patch(ctx, changed, patch))
	if err != nil {
		return err
	}
	*claim = *changed
	log.FromContext(ctx).Info("set provider ID", "NodeClaim", claim.Name, "provider-id", want)
	return nil
}

// patchOf returns the patch that writes a provider ID on the same claim, if that is not being deleted,
// has the ID that was read, and was not registered since: core writes the name of the Node then. If the claim has waited for Cluster API, a limit, or an offering that
// failed, its condition MachineAvailable becomes True. A list of conditions is replaced as a whole,
// so that needs the resourceVersion as precondition.
func patchOf(claim, changed *karpv1.NodeClaim) (client.Patch, error) {
	if HasWaited(claim) || ConditionOf(claim, v1alpha1.ConditionMachineAvailable).IsFalse() {
		changed.StatusConditions().SetTrue(v1alpha1.ConditionMachineAvailable)
		return client.MergeFromWithOptions(claim, client.MergeFromWithOptimisticLock{}), nil
	}
	const path = "/status/providerID"
	return precondition.Patch(precondition.SameUID(claim), precondition.NotDeleted(),
		unchanged(path, claim.Status.ProviderID), unchanged("/status/nodeName", claim.Status.NodeName),
		jsonpatch.NewOperation("add", path, changed.Status.ProviderID))
}

// unchanged tests that a field has the value that was read, or is still absent.
func unchanged(path, read string) jsonpatch.Operation {
	if read == "" {
		return precondition.Absent(path)
	}
	return precondition.Equal(path, read)
}

// ResetProviderID gives a claim its provisional ID, if it has another one. The claim must not be registered:
// core finds the Node by the ID, and drains it.
func ResetProviderID(ctx context.Context, workload client.Client, claim *karpv1.NodeClaim) error {
	if claim.Status.ProviderID == planner.ProvisionalID(claim.UID) {
		return nil
	}
	if IsRegistered(claim) {
		return fmt.Errorf("NodeClaim %s keeps its provider ID, because its Node is registered", claim.Name)
	}
	changed := claim.DeepCopy()
	changed.Status.ProviderID = planner.ProvisionalID(claim.UID)
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
