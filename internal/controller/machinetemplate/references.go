// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"
	"errors"
	"fmt"

	"github.com/samber/lo"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/generate"
	"github.com/karpenter-capi/karpenter-capi/internal/pattern"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/tenancy"
	"github.com/karpenter-capi/karpenter-capi/internal/version"
)

// problem is why a reference cannot be used.
type problem struct{ reason, message string }

// resolve reads the object of a reference from the served Cluster's namespace. It returns a
// problem if Cluster API cannot use the object, or it is not accepted. It also adds watches,
// so that changes of the object, and of objects generated from it, trigger a reconcile.
func (r *Reconciler) resolve(ctx context.Context, ref clusterv1.ContractVersionedObjectReference, kind scalable.Kind, accepts func(*unstructured.Unstructured) error) (*problem, error) {
	gvk, found, err := r.find(ctx, ref, accepts)
	if err != nil || found != nil {
		return found, err
	}
	return nil, r.kinds.Watch(kind.MadeOf(gvk), r.spacing.Later(r.templates.OfGenerated))
}

// find is resolve without the watch of generated objects. It returns the kind of the object.
func (r *Reconciler) find(ctx context.Context, ref clusterv1.ContractVersionedObjectReference, accepts func(*unstructured.Unstructured) error) (schema.GroupVersionKind, *problem, error) {
	gvk, err := reference.Kind(ctx, r.clusters.Management.GetClient(), ref.GroupKind())
	if unusable := reference.Unusable(""); errors.As(err, &unusable) {
		return gvk, &problem{v1alpha1.ReasonReferenceKindUnusable, unusable.Error()}, nil
	}
	if err != nil {
		return gvk, nil, err
	}
	if err := r.kinds.Watch(gvk, r.spacing.Later(r.templates.OfReferenced)); err != nil {
		return gvk, nil, err
	}
	key := types.NamespacedName{Namespace: r.clusters.Cluster.Namespace, Name: ref.Name}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	if err := r.clusters.Management.GetClient().Get(ctx, key, object); err != nil {
		if apierrors.IsNotFound(err) {
			return gvk, &problem{v1alpha1.ReasonReferenceNotFound, fmt.Sprintf("%s %s does not exist, or has the label cluster.x-k8s.io/cluster-name of another Cluster: create it in the served Cluster's namespace, or correct the name", ref.Kind, key)}, nil
		}
		return gvk, nil, fmt.Errorf("getting %s %s: %w", ref.Kind, key, err)
	}
	if err := accepts(object); err != nil {
		return gvk, &problem{reasonOf(err), err.Error()}, nil
	}
	return gvk, nil, nil
}

// readAllowed reads what a template may refer to. It also watches the Secrets that are allowed by their label.
func (r *Reconciler) readAllowed(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) (tenancy.Allowed, error) {
	if r.clusters.Allowed.SecretLabel != nil {
		if err := r.kinds.WatchMetadata(clients.SecretMetadata(), r.spacing.Later(r.templates.All)); err != nil {
			return tenancy.Allowed{}, err
		}
	}
	return generate.ReadAllowed(ctx, r.clusters, template)
}

// reasonOf returns the reason of a condition for an object that is not accepted.
func reasonOf(problem error) string {
	if refused := (tenancy.NotAllowed{}); errors.As(problem, &refused) {
		return refused.Reason
	}
	return v1alpha1.ReasonReferenceKindUnusable
}

// waitsForFrom is the message of conditions that depend on a MachineDeployment that cannot be used.
const waitsForFrom = "waits for the MachineDeployment that spec.template.from names: see condition " + v1alpha1.ConditionFromReady

// setFromReady sets what the MachineDeployment has that the template follows, and resolves the template for what
// comes after it. If that MachineDeployment cannot be used, the template is Pending.
func (r *Reconciler) setFromReady(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) error {
	conditions, from := template.StatusConditions(), template.Spec.Template.From
	if from == nil {
		template.Status.From = nil
		return conditions.Clear(v1alpha1.ConditionFromReady)
	}
	found, err := r.clusters.Pattern(ctx, template)
	if err != nil {
		return err
	}
	template.Status.From = nil
	if found == nil {
		conditions.SetFalse(v1alpha1.ConditionFromReady, v1alpha1.ReasonReferenceNotFound, r.notFound(from))
		return nil
	}
	if problem := pattern.Problem(found); problem != "" {
		conditions.SetFalse(v1alpha1.ConditionFromReady, v1alpha1.ReasonReferenceUnusable,
			fmt.Sprintf("spec.template.from: MachineDeployment %s %s", client.ObjectKeyFromObject(found), problem))
		return nil
	}
	taken := pattern.Observe(found)
	template.Status.From = &taken.ObservedMachineTemplate
	pattern.Resolve(template, taken)
	conditions.SetTrue(v1alpha1.ConditionFromReady)
	return nil
}

// notFound returns the message for a MachineDeployment that does not exist or belongs to another Cluster.
func (r *Reconciler) notFound(from *v1alpha1.MachineTemplateSource) string {
	if from.MachineDeploymentTopology != "" {
		return fmt.Sprintf("spec.template.from: the topology of Cluster %s has no MachineDeployment %s: add it to spec.topology.workers.machineDeployments of the Cluster, or correct the name", r.clusters.Cluster, from.MachineDeploymentTopology)
	}
	return fmt.Sprintf("spec.template.from: Cluster %s has no MachineDeployment %s: create it, or name one of this Cluster",
		r.clusters.Cluster, types.NamespacedName{Namespace: r.clusters.Cluster.Namespace, Name: from.MachineDeployment})
}

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

// setBootstrapReady sets whether the bootstrap template exists and can be used, and whether the template
// may refer to it. If the template names a Secret instead, it is not read, so that this operator needs no
// right to read Secrets. Cluster API does not read it either.
func (r *Reconciler) setBootstrapReady(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) error {
	conditions := template.StatusConditions()
	if pattern.Pending(template) {
		conditions.SetUnknownWithReason(v1alpha1.ConditionBootstrapReady, v1alpha1.ReasonReferenceMissing, waitsForFrom)
		return nil
	}
	allowed, err := r.readAllowed(ctx, template)
	if err != nil {
		return err
	}
	if err := allowed.Bootstrap(lo.FromPtr(template.Spec.Template.Spec.Bootstrap.DataSecretName)); err != nil {
		conditions.SetFalse(v1alpha1.ConditionBootstrapReady, reasonOf(err), err.Error())
		return nil
	}
	if ref := template.Spec.Template.Spec.Bootstrap.ConfigRef; ref.IsDefined() {
		accepts := func(base *unstructured.Unstructured) error {
			return generate.MayUse(template, v1alpha1.PatchTargetBootstrap, base, allowed)
		}
		problem, err := r.resolve(ctx, ref, scalable.KindOf(template.Spec.ScalableResource), accepts)
		if err != nil {
			return err
		}
		if problem != nil {
			conditions.SetFalse(v1alpha1.ConditionBootstrapReady, problem.reason, "spec.template.spec.bootstrap.configRef: "+problem.message)
			return nil
		}
	}
	conditions.SetTrue(v1alpha1.ConditionBootstrapReady)
	return nil
}

// setVersionReady sets which Kubernetes version new Machines get, and whether Cluster API creates
// Machines of that version. It also watches the kind of the Cluster's control plane.
func (r *Reconciler) setVersionReady(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) error {
	controlPlane, followed, err := version.Read(ctx, r.clusters, template)
	if err != nil {
		return err
	}
	if !controlPlane.Kind.Empty() {
		if err := r.kinds.Watch(controlPlane.Kind, r.spacing.Later(r.templates.All)); err != nil {
			return err
		}
	}
	if pattern.Pending(template) {
		template.Status.Version = ""
		template.StatusConditions().SetUnknownWithReason(v1alpha1.ConditionVersionReady, v1alpha1.ReasonReferenceMissing, waitsForFrom)
		return nil
	}
	bootstrap, err := r.bootstrapOf(ctx, template)
	if err != nil {
		return err
	}
	v := version.Of(template, bootstrap, controlPlane, followed)
	template.Status.Version = v.Name
	conditions := template.StatusConditions()
	if v.Problem != "" {
		conditions.SetFalse(v1alpha1.ConditionVersionReady, v.Reason, v.Problem)
		return nil
	}
	conditions.SetTrueWithReason(v1alpha1.ConditionVersionReady, v.Reason, v.Message)
	return nil
}

// bootstrapOf returns the bootstrap template, which can have annotations for Cluster API's checks; nil
// if there is none. Condition BootstrapReady reports one that does not exist or cannot be used.
func (r *Reconciler) bootstrapOf(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) (*unstructured.Unstructured, error) {
	ref := template.Spec.Template.Spec.Bootstrap.ConfigRef
	if !ref.IsDefined() || template.StatusConditions().Get(v1alpha1.ConditionBootstrapReady).IsFalse() {
		return nil, nil
	}
	return reference.Get(ctx, r.clusters.Management.GetClient(), ref, r.clusters.Cluster.Namespace)
}
