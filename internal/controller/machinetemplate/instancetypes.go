// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/enqueue"
	"github.com/karpenter-capi/karpenter-capi/internal/generate"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
)

// discoverAgain is after what time objects are read again that discovery needs and that could not be
// read. No event shows that a kind can be listed again if no object of it exists.
const discoverAgain = 10 * time.Second

// setInstanceTypesReady refreshes the Catalog, counts the offerings, and examines the objects
// that are generated for them. The condition is False if no offering is left. The condition
// OfferingsValid reports invalid offerings. It returns the time until the next examination.
//
// It sets nothing before it knows everything, because the template must not become Ready in
// a generation that was not examined.
func (r *Reconciler) setInstanceTypesReady(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) (time.Duration, error) {
	kinds, err := r.catalog.Refresh(ctx, template)
	if err != nil {
		return 0, err
	}
	for _, kind := range kinds {
		if err := r.kinds.Watch(kind, enqueue.Later(r.templates.OfReferenced)); err != nil {
			return 0, err
		}
	}
	types, problems, err := r.catalog.Types(ctx, template)
	if err != nil {
		return 0, err
	}
	result, again, err := r.examiner.Examine(ctx, template, types)
	if err != nil {
		return 0, err
	}
	if slices.ContainsFunc(problems, func(p catalog.Problem) bool { return p.Reason == v1alpha1.ReasonDiscoveryIncomplete }) {
		again = requeue.Soonest(again, discoverAgain)
	}
	template.Status.InstanceTypes = int32(len(types))
	template.Status.Offerings = int32(lo.SumBy(types, func(t catalog.Type) int { return len(t.Offerings) }))
	template.Status.InvalidOfferings, template.Status.AcceptedHash = result.Invalid, result.Hash
	conditions := template.StatusConditions()
	switch {
	case result.All != nil:
		conditions.SetFalse(v1alpha1.ConditionInstanceTypesReady, generate.ReasonOf(result.All), result.All.Error())
	case len(types) > 0:
		conditions.SetTrue(v1alpha1.ConditionInstanceTypesReady)
	case len(problems) > 0:
		conditions.SetFalse(v1alpha1.ConditionInstanceTypesReady, problems[0].Reason, textOf(problems))
	case len(template.Spec.CatalogRefs) > 0:
		conditions.SetFalse(v1alpha1.ConditionInstanceTypesReady, v1alpha1.ReasonNoInstanceTypes,
			"the catalogs in spec.catalogRefs list no instance type: add some to them")
	case template.Spec.Discovery != nil:
		conditions.SetFalse(v1alpha1.ConditionInstanceTypesReady, v1alpha1.ReasonNoInstanceTypes,
			"spec.discovery finds nothing: label what it should find, or correct its selectors")
	default:
		conditions.SetFalse(v1alpha1.ConditionInstanceTypesReady, v1alpha1.ReasonNoInstanceTypes,
			"the template has no instance types: name an InstanceTypeCatalog in spec.catalogRefs, or set spec.discovery")
	}
	return again, nil
}

// textOf returns the messages of problems.
func textOf(problems []catalog.Problem) string {
	messages := lo.Map(problems, func(p catalog.Problem, _ int) string { return p.Message })
	return strings.Join(messages, "; ")
}
