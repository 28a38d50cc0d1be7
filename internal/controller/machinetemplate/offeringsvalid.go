// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// setOfferingsValid reports all invalid instance types and offerings of the template and its
// discovery. It comes after setInstanceTypesReady, because it reads status.invalidOfferings.
func (r *Reconciler) setOfferingsValid(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) error {
	_, problems, err := r.catalog.Types(ctx, template)
	if err != nil {
		return err
	}
	problems = append(problems[:len(problems):len(problems)], invalidOfferings(template)...)
	conditions := template.StatusConditions()
	if len(problems) == 0 {
		conditions.SetTrue(v1alpha1.ConditionOfferingsValid)
		return nil
	}
	conditions.SetFalse(v1alpha1.ConditionOfferingsValid, problems[0].Reason, textOf(problems))
	return nil
}
