// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"
	"fmt"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
)

// Reference is a reference to a base template.
type Reference struct {
	clusterv1.ContractVersionedObjectReference
	// Field names the field that has the reference, for messages.
	Field string
	// Target is what the base template is for.
	Target v1alpha1.PatchTarget
	// Shared reports whether only catalogs have the reference, which other templates can share.
	Shared bool
}

// References returns the references of a template to base templates, each once: those of the template,
// and then those of the instance types in its catalogs.
func References(ctx context.Context, clusters *clients.Clusters, template *v1alpha1.KarpenterMachineTemplate) ([]Reference, error) {
	catalogs, err := catalog.ReadCatalogs(ctx, clusters, template)
	if err != nil {
		return nil, err
	}
	return referencesOf(template, lo.Compact(catalogs)), nil
}

func referencesOf(template *v1alpha1.KarpenterMachineTemplate, catalogs []*v1alpha1.InstanceTypeCatalog) []Reference {
	var references []Reference
	seen := map[clusterv1.ContractVersionedObjectReference]bool{}
	add := func(ref *clusterv1.ContractVersionedObjectReference, target v1alpha1.PatchTarget, shared bool, field func() string) {
		if !ref.IsDefined() || seen[*ref] {
			return
		}
		seen[*ref] = true
		references = append(references, Reference{ContractVersionedObjectReference: *ref, Field: field(), Target: target, Shared: shared})
	}
	spec := &template.Spec.Template.Spec
	add(&spec.Bootstrap.ConfigRef, v1alpha1.PatchTargetBootstrap, false, func() string { return "spec.template.spec.bootstrap.configRef" })
	add(spec.InfrastructureRef, v1alpha1.PatchTargetInfrastructure, false, func() string { return "spec.template.spec.infrastructureRef" })
	for _, shared := range catalogs {
		for i := range shared.Spec.InstanceTypes {
			add(shared.Spec.InstanceTypes[i].InfrastructureRef, v1alpha1.PatchTargetInfrastructure, true, func() string {
				return fmt.Sprintf("%s %s: spec.instanceTypes[%d].infrastructureRef", v1alpha1.CatalogKind, shared.Name, i)
			})
		}
	}
	return references
}

// kindsOf returns the kinds of the base templates that a template refers to or discovers.
func kindsOf(ctx context.Context, clusters *clients.Clusters, template *v1alpha1.KarpenterMachineTemplate) ([]schema.GroupKind, error) {
	references, err := References(ctx, clusters, template)
	if err != nil {
		return nil, err
	}
	kinds := lo.Map(references, func(reference Reference, _ int) schema.GroupKind { return reference.GroupKind() })
	if discovery := template.Spec.Discovery; discovery != nil && discovery.InfrastructureTemplates != nil {
		kinds = append(kinds, schema.GroupKind{Group: discovery.InfrastructureTemplates.APIGroup, Kind: discovery.InfrastructureTemplates.Kind})
	}
	return lo.Uniq(kinds), nil
}
