// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"
	"strings"

	"github.com/awslabs/operatorpkg/status"
	"github.com/samber/lo"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// setReady copies the reasons and messages of False conditions to Ready, which users read
// first and which Karpenter repeats on NodePools and NodeClaims. operatorpkg itself only names
// the conditions.
func (r *Reconciler) setReady(_ context.Context, template *v1alpha1.KarpenterMachineTemplate) error {
	conditions := template.StatusConditions()
	var reason string
	var messages []string
	dependents := []string{
		v1alpha1.ConditionClusterReady, v1alpha1.ConditionFromReady, v1alpha1.ConditionInfrastructureReady,
		v1alpha1.ConditionBootstrapReady, v1alpha1.ConditionVersionReady, v1alpha1.ConditionInstanceTypesReady,
	}
	if !template.DeletionTimestamp.IsZero() {
		dependents = append([]string{v1alpha1.ConditionDeletable}, dependents...)
	}
	for _, dependent := range dependents {
		// A condition of an earlier generation could not be set now.
		if condition := conditions.Get(dependent); condition.IsFalse() && condition.ObservedGeneration == template.Generation {
			reason = lo.CoalesceOrEmpty(reason, condition.Reason)
			messages = append(messages, condition.Message)
		}
	}
	if len(messages) > 0 {
		conditions.SetFalse(status.ConditionReady, reason, strings.Join(messages, "; "))
	}
	return nil
}
