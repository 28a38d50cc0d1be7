// SPDX-License-Identifier: Apache-2.0

package providerid

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
)

// report writes on a registered claim whether its Machine still has its provider ID. A provider can
// change the ID, and Cluster API copies it from the infrastructure object. Karpenter finds the Node,
// and drains it, only by the ID with which it was registered. Therefore the claim keeps that ID, and
// a user must remove the contradiction.
func (r *Reconciler) report(ctx context.Context, claim *karpv1.NodeClaim, machine *clusterv1.Machine) error {
	known := operator.ConditionOf(claim, v1alpha1.ConditionProviderIDUnchanged)
	same := machine.Spec.ProviderID == claim.Status.ProviderID
	if same && known == nil {
		return nil
	}
	changed, problem := claim.DeepCopy(), contradiction(claim, machine)
	conditions := changed.StatusConditions()
	if same && !conditions.SetTrue(v1alpha1.ConditionProviderIDUnchanged) ||
		!same && !conditions.SetFalse(v1alpha1.ConditionProviderIDUnchanged, v1alpha1.ReasonProviderIDChanged, problem) {
		return nil
	}
	// A list of conditions is replaced as a whole.
	patch := client.MergeFromWithOptions(claim, client.MergeFromWithOptimisticLock{})
	if err := r.clusters.Workload.GetClient().Status().Patch(ctx, changed, patch); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("patching the status of NodeClaim %s: %w", claim.Name, err))
	}
	if !same {
		r.recorder.Publish(events.Event{
			InvolvedObject: claim,
			Type:           corev1.EventTypeWarning,
			Reason:         v1alpha1.ReasonProviderIDChanged,
			Message:        problem,
			DedupeValues:   []string{string(claim.UID), machine.Spec.ProviderID},
		})
	}
	return nil
}

// contradiction describes that a Machine has another provider ID than its claim, and what to do.
func contradiction(claim *karpv1.NodeClaim, machine *clusterv1.Machine) string {
	infrastructure := machine.Spec.InfrastructureRef
	return fmt.Sprintf("Machine %s has got provider ID %s, but Node %s of this NodeClaim was registered with %s, so Cluster API no longer finds the Node. Correct the provider ID of %s %s, or delete this NodeClaim to drain and replace its Node",
		client.ObjectKeyFromObject(machine), machine.Spec.ProviderID, claim.Status.NodeName, claim.Status.ProviderID, infrastructure.Kind, infrastructure.Name)
}
