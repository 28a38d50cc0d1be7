// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"
	"fmt"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/hash"
	"github.com/karpenter-capi/karpenter-capi/internal/pattern"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/tenancy"
	"github.com/karpenter-capi/karpenter-capi/internal/version"
)

// Bases are what objects are generated from, besides the KarpenterMachineTemplate.
type Bases struct {
	// Infrastructure and Bootstrap are the templates that template.spec of a
	// KarpenterMachineTemplate refers to; nil if it refers to none.
	Infrastructure, Bootstrap *unstructured.Unstructured
	// ByRef returns the template that an instance type refers to.
	ByRef func(clusterv1.ContractVersionedObjectReference) (*unstructured.Unstructured, error)
	// ControlPlane is that of the served Cluster, whose version Machines get, and Followed the MachineDeployment
	// that the template follows.
	ControlPlane version.ControlPlane
	Followed     version.Followed
	// Allowed is what templates may refer to and set.
	Allowed tenancy.Allowed
}

// targets are what bases are for.
var targets = []v1alpha1.PatchTarget{v1alpha1.PatchTargetInfrastructure, v1alpha1.PatchTargetBootstrap}

// of returns the base for a target; nil if there is none.
func (b Bases) of(target v1alpha1.PatchTarget) *unstructured.Unstructured {
	if target == v1alpha1.PatchTargetBootstrap {
		return b.Bootstrap
	}
	return b.Infrastructure
}

// ReadBases reads the bases of a template from the cache of the management cluster. They are shared with the cache and
// must not be modified.
// A base that does not exist is an error, and so is one that the template may not refer to.
func ReadBases(ctx context.Context, clusters *clients.Clusters, template *v1alpha1.KarpenterMachineTemplate) (Bases, error) {
	bases := Bases{ByRef: func(ref clusterv1.ContractVersionedObjectReference) (*unstructured.Unstructured, error) {
		return reference.Shared(ctx, clusters.Management.GetClient(), ref, clusters.Cluster.Namespace)
	}}
	if pattern.Pending(template) {
		return Bases{}, PendingError{Template: template.Name}
	}
	var err error
	if ref := template.Spec.Template.Spec.InfrastructureRef; ref != nil {
		if bases.Infrastructure, err = reference.Shared(ctx, clusters.Management.GetClient(), *ref, clusters.Cluster.Namespace); err != nil {
			return Bases{}, fmt.Errorf("KarpenterMachineTemplate %s: spec.template.spec.infrastructureRef: %w", template.Name, err)
		}
	}
	if ref := template.Spec.Template.Spec.Bootstrap.ConfigRef; ref.IsDefined() {
		if bases.Bootstrap, err = reference.Shared(ctx, clusters.Management.GetClient(), ref, clusters.Cluster.Namespace); err != nil {
			return Bases{}, fmt.Errorf("KarpenterMachineTemplate %s: spec.template.spec.bootstrap.configRef: %w", template.Name, err)
		}
	}
	if bases.ControlPlane, bases.Followed, err = version.Read(ctx, clusters, template); err != nil {
		return Bases{}, fmt.Errorf("KarpenterMachineTemplate %s: %w", template.Name, err)
	}
	if bases.Allowed, err = ReadAllowed(ctx, clusters, template); err != nil {
		return Bases{}, fmt.Errorf("KarpenterMachineTemplate %s: %w", template.Name, err)
	}
	if err := mayUse(template, bases); err != nil {
		return Bases{}, fmt.Errorf("KarpenterMachineTemplate %s: %w", template.Name, err)
	}
	return bases, nil
}

// PendingError is the error for a template that is Pending (see package pattern), for which nothing can be generated now.
type PendingError struct{ Template string }

// Error names the template.
func (e PendingError) Error() string {
	return fmt.Sprintf("KarpenterMachineTemplate %s: the MachineDeployment in spec.template.from cannot be used, or is being examined: see condition %s", e.Template, v1alpha1.ConditionFromReady)
}

// originOf returns the part of a copy's name that shows what it was copied from. For a template that
// follows a MachineDeployment, that is the MachineDeployment: a topology gives templates new names
// also if their content stays the same.
func (g *Generator) originOf(base *unstructured.Unstructured) string {
	if followed := g.followed; followed != "" {
		return followed
	}
	return base.GetName()
}

// copyOf returns a template with the base's kind and another spec, like those of Cluster
// API's topology controller (exp/topology/desiredstate/desired_state.go,
// templateToTemplate). It has only those annotations of the base that Cluster API reads
// from templates: with the other labels and annotations, GitOps tools would treat it as
// theirs. Its name does not depend on them; package generatedcopy keeps them up to date.
func (g *Generator) copyOf(base *unstructured.Unstructured, spec map[string]any) *unstructured.Unstructured {
	kind := base.GroupVersionKind()
	// Each Cluster has its own copies, even of a base that several Clusters share.
	content := hash.Of(hash.Copy, g.cluster.Name, g.template.Name, kind.GroupKind().String(), spec)
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetGroupVersionKind(kind)
	object.SetNamespace(g.cluster.Namespace)
	object.SetName(nameOf(content, g.template.Name, g.originOf(base)))
	object.SetLabels(lo.Assign(scalable.GeneratedLabels(g.cluster, g.template.Name), map[string]string{v1alpha1.TemplateHashLabel: content}))
	object.SetAnnotations(CopiedAnnotations(map[string]string{
		clusterv1.TemplateClonedFromNameAnnotation:      base.GetName(),
		clusterv1.TemplateClonedFromGroupKindAnnotation: kind.GroupKind().String(),
	}, base.GetAnnotations()))
	return object
}
