// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/generate"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// maxNamed is the number of offerings that the condition's message names.
const maxNamed = 5

// setOfferingsAvailable removes failures that no longer count, adds those that could not be
// written when they happened, and sets which offerings are unavailable now.
func (r *Reconciler) setOfferingsAvailable(_ context.Context, template *v1alpha1.KarpenterMachineTemplate) error {
	now := r.clock.Now()
	template.Status.UnavailableOfferings = r.catalog.Unavailable(template, now)
	unavailable := catalog.Unavailable(template.Status.UnavailableOfferings, now)
	conditions := template.StatusConditions()
	if len(unavailable) == 0 {
		conditions.SetTrue(v1alpha1.ConditionOfferingsAvailable)
		return nil
	}
	texts := lo.Map(unavailable[:min(len(unavailable), maxNamed)], func(o v1alpha1.UnavailableOffering, _ int) string {
		return fmt.Sprintf("%s until %s (%s: %s)", strings.Join(lo.Compact([]string{o.InstanceType, o.Zone, o.CapacityType}), "/"),
			o.Until.UTC().Format(time.RFC3339), o.Reason, o.Message)
	})
	if more := len(unavailable) - maxNamed; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	conditions.SetFalse(v1alpha1.ConditionOfferingsAvailable, v1alpha1.ReasonOfferingsUnavailable,
		"Karpenter does not choose these offerings: "+strings.Join(texts, "; "))
	return nil
}

// setAvailable sets how many offerings can be chosen now. It comes last, because the number
// depends on the rest of the status. It changes only if the rest changes.
func (r *Reconciler) setAvailable(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) error {
	available, err := r.catalog.CountAvailable(ctx, template, r.clock.Now())
	if err != nil {
		return err
	}
	template.Status.AvailableOfferings = int32(available)
	return nil
}

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
		if err := r.kinds.Watch(kind, r.spacing.Later(r.templates.OfReferenced)); err != nil {
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

// setOfferingsValid reports all invalid instance types and offerings of the template and its
// discovery. It comes after setInstanceTypesReady and setScalableResources, because it reads their parts of the status.
func (r *Reconciler) setOfferingsValid(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) error {
	types, problems, err := r.catalog.Types(ctx, template)
	if err != nil {
		return err
	}
	pools, err := r.poolsOf(ctx, template)
	if err != nil {
		return err
	}
	changed, err := r.changedByHand(ctx, template)
	if err != nil {
		return err
	}
	uncounted, err := r.catalog.Uncounted(ctx, template)
	if err != nil {
		return err
	}
	problems = slices.Concat(problems, uncounted, changed, invalidOfferings(template), catalog.Untolerated(types, pools))
	conditions := template.StatusConditions()
	if len(problems) == 0 {
		conditions.SetTrue(v1alpha1.ConditionOfferingsValid)
		return nil
	}
	conditions.SetFalse(v1alpha1.ConditionOfferingsValid, problems[0].Reason, textOf(problems))
	return nil
}

// changedByHand returns the problems of generated MachineDeployments that are suspended because a user has changed them.
func (r *Reconciler) changedByHand(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) ([]catalog.Problem, error) {
	var problems []catalog.Problem
	for _, listed := range template.Status.ScalableResources {
		if !listed.Paused {
			continue
		}
		resource, err := scalable.Get(ctx, r.clusters, listed.Name)
		if err != nil {
			return nil, err
		}
		if resource == nil {
			continue
		}
		why, err := scalable.Changed(ctx, r.clusters, resource)
		if err != nil {
			return nil, err
		}
		if why != "" {
			problems = append(problems, catalog.Problem{Reason: v1alpha1.ReasonMachineDeploymentChanged, Message: why})
		}
	}
	return problems, nil
}

// poolsOf returns the NodePools that use a template, by name. They are shared with the cache.
func (r *Reconciler) poolsOf(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) ([]karpv1.NodePool, error) {
	list := &karpv1.NodePoolList{}
	if err := r.clusters.Workload.GetClient().List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the NodePools of KarpenterMachineTemplate %s: %w", template.Name, err)
	}
	pools := slices.DeleteFunc(slices.Clone(list.Items), func(pool karpv1.NodePool) bool {
		ref := pool.Spec.Template.Spec.NodeClassRef
		return !clients.IsTemplate(ref) || ref.Name != template.Name
	})
	slices.SortFunc(pools, func(a, b karpv1.NodePool) int { return strings.Compare(a.Name, b.Name) })
	return pools, nil
}

// invalidOfferings returns the problems of status.invalidOfferings.
func invalidOfferings(template *v1alpha1.KarpenterMachineTemplate) []catalog.Problem {
	return lo.Map(template.Status.InvalidOfferings, func(group v1alpha1.InvalidOfferings, _ int) catalog.Problem {
		which := "offering " + strings.Join(group.Examples, ", ")
		if group.Count > 1 {
			which = fmt.Sprintf("%d offerings, such as %s", group.Count, strings.Join(group.Examples, ", "))
		}
		return catalog.Problem{Reason: group.Reason, Message: which + ": " + group.Message}
	})
}
