// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"
	"strings"

	"github.com/samber/lo"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
)

// maxMessage keeps a condition's message within what the CRD takes.
const maxMessage = 4096

// setInstanceTypesReady brings the catalogue up to date, counts what is on offer, and
// tells if nothing is. What is wrong with some of it has a condition of its own.
func (r *Reconciler) setInstanceTypesReady(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) error {
	kinds, err := r.catalog.Refresh(ctx, template)
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		if err := r.watches.add(kind, later(r.ofReferenced)); err != nil {
			return err
		}
	}
	types, problems, err := r.catalog.Types(ctx, template)
	if err != nil {
		return err
	}
	template.Status.InstanceTypes = int32(len(types))
	template.Status.Offerings = int32(lo.SumBy(types, func(t catalog.Type) int { return len(t.Offerings) }))
	conditions := template.StatusConditions()
	switch {
	case len(types) > 0:
		conditions.SetTrue(v1alpha1.ConditionInstanceTypesReady)
	case len(problems) > 0:
		conditions.SetFalse(v1alpha1.ConditionInstanceTypesReady, problems[0].Reason, textOf(problems))
	case template.Spec.Discovery != nil:
		conditions.SetFalse(v1alpha1.ConditionInstanceTypesReady, v1alpha1.ReasonNoInstanceTypes,
			"spec.instanceTypes is empty and spec.discovery finds nothing: label what it is to find, or mend its selectors")
	default:
		conditions.SetFalse(v1alpha1.ConditionInstanceTypesReady, v1alpha1.ReasonNoInstanceTypes,
			"spec.instanceTypes is empty: add the instance types that Karpenter may choose from")
	}
	return nil
}

// textOf returns the messages of problems, as far as a condition has room.
func textOf(problems []catalog.Problem) string {
	messages := lo.Map(problems, func(p catalog.Problem, _ int) string { return p.Message })
	return lo.Substring(strings.Join(messages, "; "), 0, maxMessage)
}
