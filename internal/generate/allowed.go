// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/samber/lo"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/tenancy"
)

// MayUse returns an error if a template may not use an object as its infrastructure or bootstrap template: one of a kind
// that generates no Machines, or one that it may not refer to. What patches change is determined for each offering.
func MayUse(template *v1alpha1.KarpenterMachineTemplate, target v1alpha1.PatchTarget, base *unstructured.Unstructured, allowed tenancy.Allowed) error {
	settings := template.Spec.ScalableResource
	if target == v1alpha1.PatchTargetBootstrap {
		return cmp.Or(scalable.AcceptsBootstrap(base), allowed.Base(base))
	}
	return cmp.Or(scalable.KindOf(settings).Accepts(base, settings), allowed.Base(base))
}

// mayUse returns an error if a template may not use one of its bases, or a Secret with bootstrap data.
func mayUse(template *v1alpha1.KarpenterMachineTemplate, bases Bases) error {
	for _, target := range targets {
		if base := bases.of(target); base != nil {
			if err := MayUse(template, target, base, bases.Allowed); err != nil {
				return err
			}
		}
	}
	return bases.Allowed.Bootstrap(lo.FromPtr(template.Spec.Template.Spec.Bootstrap.DataSecretName))
}

// ReadAllowed reads from the caches what a template may refer to and set. Of the Cluster's own base
// templates, it reads those of the kinds that the template refers to, because the operator may have no
// right to read others.
func ReadAllowed(ctx context.Context, clusters *clients.Clusters, template *v1alpha1.KarpenterMachineTemplate) (tenancy.Allowed, error) {
	allowed := tenancy.Allowed{Cluster: clusters.Cluster, Rules: clusters.Allowed, Own: tenancy.NewOwn()}
	if err := readResources(ctx, clusters, template, &allowed); err != nil {
		return tenancy.Allowed{}, err
	}
	if err := readControlPlane(ctx, clusters, allowed.Own); err != nil {
		return tenancy.Allowed{}, err
	}
	kinds, err := kindsOf(ctx, clusters, template)
	if err != nil {
		return tenancy.Allowed{}, err
	}
	for _, kind := range kinds {
		if err := readTemplates(ctx, clusters, kind, allowed.Own); err != nil {
			return tenancy.Allowed{}, err
		}
	}
	return allowed, readLabelled(ctx, clusters, allowed.Own)
}

// readControlPlane reads which template of machines the control plane refers to.
func readControlPlane(ctx context.Context, clusters *clients.Clusters, own tenancy.Own) error {
	cluster, err := clusters.Cached(ctx)
	if err != nil || cluster == nil || !cluster.Spec.ControlPlaneRef.IsDefined() {
		return err
	}
	object, err := reference.Shared(ctx, clusters.Management.GetClient(), cluster.Spec.ControlPlaneRef, clusters.Cluster.Namespace)
	if unusable := reference.Unusable(""); apierrors.IsNotFound(err) || errors.As(err, &unusable) {
		return nil // package version reports it
	}
	if err != nil {
		return fmt.Errorf("getting the control plane of Cluster %s: %w", clusters.Cluster, err)
	}
	own.AddControlPlane(object)
	return nil
}

// readLabelled reads the names of the Secrets that the rules allow by their label.
func readLabelled(ctx context.Context, clusters *clients.Clusters, own tenancy.Own) error {
	label := clusters.Allowed.SecretLabel
	if label == nil {
		return nil
	}
	secrets := &metav1.PartialObjectMetadataList{}
	secrets.SetGroupVersionKind(clients.SecretMetadata().GroupVersionKind())
	if err := clusters.Management.GetClient().List(ctx, secrets, client.InNamespace(clusters.Cluster.Namespace),
		client.MatchingLabelsSelector{Selector: label}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the Secrets that --allowed-secrets selects by their label, for which the operator needs the right to list and watch Secrets in namespace %s: %w", clusters.Cluster.Namespace, err)
	}
	for i := range secrets.Items {
		own.Labelled.Insert(secrets.Items[i].Name)
	}
	return nil
}

// readResources reads the MachineDeployments and MachinePools of the Cluster that the operator did not
// generate, and the metadata that the template takes from one of them.
func readResources(ctx context.Context, clusters *clients.Clusters, template *v1alpha1.KarpenterMachineTemplate, allowed *tenancy.Allowed) error {
	management, namespace := clusters.Management.GetClient(), client.InNamespace(clusters.Cluster.Namespace)
	deployments, pools := &clusterv1.MachineDeploymentList{}, &clusterv1.MachinePoolList{}
	if err := errors.Join(management.List(ctx, deployments, namespace, client.UnsafeDisableDeepCopy), management.List(ctx, pools, namespace, client.UnsafeDisableDeepCopy)); err != nil {
		return fmt.Errorf("listing the MachineDeployments and MachinePools of Cluster %s: %w", clusters.Cluster, err)
	}
	taken, err := clusters.Taken(ctx, template)
	if err != nil {
		return err
	}
	allowed.Pattern = lo.FromPtr(taken).Metadata
	for i := range deployments.Items {
		addResource(clusters.Cluster, &deployments.Items[i], deployments.Items[i].Spec.Template.Spec, allowed.Own)
	}
	for i := range pools.Items {
		addResource(clusters.Cluster, &pools.Items[i], pools.Items[i].Spec.Template.Spec, allowed.Own)
	}
	return nil
}

func addResource(cluster types.NamespacedName, object metav1.Object, machine clusterv1.MachineSpec, own tenancy.Own) {
	if resource := (tenancy.Resource{Object: object, Machine: machine}); resource.IsOwn(cluster) {
		own.AddResource(resource)
	}
}

// readTemplates reads the Cluster's own base templates of one kind: those with its label, and those that its
// MachineDeployments and MachinePools refer to. Conditions of the template report a kind that cannot be used or
// listed; nothing of such a kind is allowed.
func readTemplates(ctx context.Context, clusters *clients.Clusters, kind schema.GroupKind, own tenancy.Own) error {
	management := clusters.Management.GetClient()
	gvk, err := reference.Kind(ctx, management, kind)
	if unusable := reference.Unusable(""); errors.As(err, &unusable) {
		return nil
	}
	if err != nil {
		return err
	}
	labelled := &unstructured.UnstructuredList{}
	labelled.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := management.List(ctx, labelled, client.InNamespace(clusters.Cluster.Namespace),
		client.MatchingLabels{clusterv1.ClusterNameLabel: clusters.Cluster.Name}, client.UnsafeDisableDeepCopy); err != nil {
		if errors.As(err, &reference.Unlisted{}) {
			return nil
		}
		return fmt.Errorf("listing the %ss of Cluster %s: %w", kind.Kind, clusters.Cluster, err)
	}
	for i := range labelled.Items {
		own.AddTemplate(&labelled.Items[i], clusters.Cluster)
	}
	for template := range own.Templates {
		if template.Kind != kind {
			continue
		}
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(gvk)
		if err := management.Get(ctx, types.NamespacedName{Namespace: clusters.Cluster.Namespace, Name: template.Name}, object, client.UnsafeDisableDeepCopy); err != nil {
			if apierrors.IsNotFound(err) {
				continue
			}
			return fmt.Errorf("getting %s %s of Cluster %s: %w", kind.Kind, template.Name, clusters.Cluster, err)
		}
		own.AddTemplate(object, clusters.Cluster)
	}
	return nil
}
