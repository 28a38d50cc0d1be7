// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"
	"errors"
	"fmt"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/generate"
	"github.com/karpenter-capi/karpenter-capi/internal/pattern"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// setInfrastructureReady sets whether all infrastructure templates exist that the template and its
// instance types name, whether it may refer to them, and whether Machines can be created from the resources
// that were generated from them. Discovered objects always exist. Templates share catalogs, so a mistake in a catalog
// is reported for the offerings that have it (see package generate), and its other offerings can be used.
func (r *Reconciler) setInfrastructureReady(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) error {
	conditions := template.StatusConditions()
	references, err := generate.References(ctx, r.clusters, template)
	if err != nil {
		return err
	}
	references = lo.Filter(references, func(ref generate.Reference, _ int) bool {
		return ref.Target == v1alpha1.PatchTargetInfrastructure
	})
	if len(references) == 0 && pattern.Pending(template) {
		conditions.SetUnknownWithReason(v1alpha1.ConditionInfrastructureReady, v1alpha1.ReasonReferenceMissing, waitsForFrom)
		return nil
	}
	if len(references) == 0 && template.Spec.Discovery == nil {
		conditions.SetFalse(v1alpha1.ConditionInfrastructureReady, v1alpha1.ReasonReferenceMissing,
			"spec.template.spec.infrastructureRef is not set, and no instance type has an infrastructureRef: name an infrastructure machine template")
		return nil
	}
	kind := scalable.KindOf(template.Spec.ScalableResource)
	allowed, err := r.readAllowed(ctx, template)
	if err != nil {
		return err
	}
	accepts := func(base *unstructured.Unstructured) error {
		return generate.MayUse(template, v1alpha1.PatchTargetInfrastructure, base, allowed)
	}
	for _, ref := range references {
		problem, err := r.resolve(ctx, ref.ContractVersionedObjectReference, kind, accepts)
		if err != nil && (!ref.Shared || !errors.As(err, &reference.Unlisted{})) {
			return err
		}
		if problem != nil && !ref.Shared {
			conditions.SetFalse(v1alpha1.ConditionInfrastructureReady, problem.reason, ref.Field+": "+problem.message)
			return nil
		}
	}
	why, err := r.unusable(ctx, template)
	if err != nil {
		return err
	}
	if why != "" {
		conditions.SetFalse(v1alpha1.ConditionInfrastructureReady, v1alpha1.ReasonScalableResourceUnusable, why)
		return nil
	}
	conditions.SetTrue(v1alpha1.ConditionInfrastructureReady)
	return nil
}

// unusable returns why a scalable resource of the template's current revision cannot create
// Machines; empty if all can. Resources of earlier revisions do not matter.
func (r *Reconciler) unusable(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) (string, error) {
	resources, err := scalable.List(ctx, r.clusters, client.MatchingLabels{v1alpha1.TemplateLabel: template.Name})
	if err != nil {
		return "", fmt.Errorf("KarpenterMachineTemplate %s: %w", template.Name, err)
	}
	for _, resource := range resources {
		why, err := scalable.Unusable(ctx, r.clusters, resource)
		if err != nil {
			return "", err
		}
		if why != "" && generate.Current(ctx, r.clusters, r.catalog, template, resource) != nil {
			return why, nil
		}
	}
	return "", nil
}
