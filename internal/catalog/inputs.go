// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/pattern"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/tenancy"
)

// inputs are the inputs of a template's entry, in addition to the template itself.
type inputs struct {
	// Catalogs identify the InstanceTypeCatalogs that the template refers to.
	Catalogs []catalogVersion
	// FailureDomains are those that the Cluster reports, sorted.
	FailureDomains []string
	// Discovered are the objects that discovery has found, by name. Problems are why
	// others cannot be used.
	Discovered []Source
	Problems   []Problem
	// Incomplete reports whether a catalog does not exist, or objects that discovery needs could not be read.
	Incomplete bool
	// Used are the offerings that NodeClaims of the template have.
	Used []used
}

// catalogVersion identifies the content of an InstanceTypeCatalog; it is empty for one that does not exist.
type catalogVersion struct {
	UID        types.UID
	Generation int64
}

// reader reads the inputs of one template from the caches.
type reader struct {
	clusters *clients.Clusters
	template *v1alpha1.KarpenterMachineTemplate
	prices   prices
	// catalogs are those of inputs.Catalogs. They are shared with the cache.
	catalogs []*v1alpha1.InstanceTypeCatalog
	// kinds are the kinds of the infrastructure templates that were read.
	kinds map[schema.GroupVersionKind]bool
	inputs
}

// read returns a template's inputs, and the kinds of objects that change them, in
// addition to MachineDeployments, NodeClaims, InstanceTypeCatalogs and the Cluster. What
// cannot be discovered now is a problem and not an error, so that the rest is offered. It
// does not wait for objects if the context has ended.
func read(ctx context.Context, clusters *clients.Clusters, template *v1alpha1.KarpenterMachineTemplate) (*reader, error) {
	r := &reader{clusters: clusters, template: template, kinds: map[schema.GroupVersionKind]bool{}}
	claims, err := Claims(ctx, clusters, template)
	if err != nil {
		return nil, err
	}
	r.Used = usedBy(claims)
	cluster, err := clusters.Cached(ctx)
	if err != nil {
		return nil, err
	}
	if cluster != nil {
		r.FailureDomains = clients.FailureDomains(cluster)
	}
	if err := r.readCatalogs(ctx); err != nil {
		return nil, err
	}
	discovery := template.Spec.Discovery
	if discovery == nil {
		return r, nil
	}
	if r.prices, err = pricesOfDiscovered(discovery.Pricing); err != nil {
		r.problem(v1alpha1.ReasonInstanceTypesInvalid, "spec.discovery", err)
	}
	r.infrastructureTemplates(ctx, discovery.InfrastructureTemplates)
	r.machineDeployments(ctx, discovery.MachineDeployments, cluster)
	return r, nil
}

// sortedKinds returns the kinds of the infrastructure templates that were read.
func (r *reader) sortedKinds() []schema.GroupVersionKind {
	return slices.SortedFunc(maps.Keys(r.kinds), func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
}

// readCatalogs reads the catalogs that the template refers to. If one does not exist, the other
// sources are still offered.
func (r *reader) readCatalogs(ctx context.Context) error {
	catalogs, err := ReadCatalogs(ctx, r.clusters, r.template)
	if err != nil {
		return err
	}
	for i, found := range catalogs {
		if found == nil {
			r.Incomplete = true
			r.problem(v1alpha1.ReasonReferenceNotFound, fmt.Sprintf("spec.catalogRefs[%d]", i),
				fmt.Errorf("%s %s does not exist: create it, or remove the reference", v1alpha1.CatalogKind, r.template.Spec.CatalogRefs[i].Name))
			continue
		}
		r.catalogs = append(r.catalogs, found)
	}
	r.Catalogs = versionsOf(catalogs)
	return nil
}

// versionsOf returns which content catalogs have, in the same order.
func versionsOf(catalogs []*v1alpha1.InstanceTypeCatalog) []catalogVersion {
	return lo.Map(catalogs, func(found *v1alpha1.InstanceTypeCatalog, _ int) catalogVersion {
		if found == nil {
			return catalogVersion{}
		}
		return catalogVersion{found.UID, found.Generation}
	})
}

// ReadCatalogs returns the catalogs of spec.catalogRefs, in the same order; nil in place of one that does not
// exist. They are shared with the cache and must not be modified.
func ReadCatalogs(ctx context.Context, clusters *clients.Clusters, template *v1alpha1.KarpenterMachineTemplate) ([]*v1alpha1.InstanceTypeCatalog, error) {
	if len(template.Spec.CatalogRefs) == 0 {
		return nil, nil
	}
	list := &v1alpha1.InstanceTypeCatalogList{}
	if err := clusters.Workload.GetClient().List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing InstanceTypeCatalogs: %w", err)
	}
	return lo.Map(template.Spec.CatalogRefs, func(ref v1alpha1.CatalogReference, _ int) *v1alpha1.InstanceTypeCatalog {
		at := slices.IndexFunc(list.Items, func(c v1alpha1.InstanceTypeCatalog) bool { return c.Name == ref.Name })
		if at < 0 {
			return nil
		}
		return &list.Items[at]
	}), nil
}

// Claims returns the NodeClaims of a template. They are shared with the cache and must
// not be modified.
func Claims(ctx context.Context, clusters *clients.Clusters, template *v1alpha1.KarpenterMachineTemplate) ([]karpv1.NodeClaim, error) {
	list := &karpv1.NodeClaimList{}
	if err := clusters.Workload.GetClient().List(ctx, list, client.MatchingFields{clients.NodeClaimTemplateField: template.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the NodeClaims of KarpenterMachineTemplate %s: %w", template.Name, err)
	}
	return list.Items, nil
}

// ClaimsThatCount returns the NodeClaims that can count toward the limits of a template: its own and, if it shares a
// limit with other templates, those of all. They are shared with the cache and must not be modified.
func ClaimsThatCount(ctx context.Context, clusters *clients.Clusters, template *v1alpha1.KarpenterMachineTemplate, limits Limits) ([]karpv1.NodeClaim, error) {
	if !limits.shared {
		return Claims(ctx, clusters, template)
	}
	list := &karpv1.NodeClaimList{}
	if err := clusters.Workload.GetClient().List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing NodeClaims: %w", err)
	}
	return lo.Filter(list.Items, func(claim karpv1.NodeClaim, _ int) bool { return clients.IsTemplate(claim.Spec.NodeClassRef) }), nil
}

// infrastructureTemplates reads the infrastructure templates that discovery selects. The
// cache has none of other Clusters.
func (r *reader) infrastructureTemplates(ctx context.Context, discovery *v1alpha1.InfrastructureTemplateDiscovery) {
	if discovery == nil {
		return
	}
	const field = "spec.discovery.infrastructureTemplates"
	selector, ok := r.selector(field, &discovery.Selector)
	if !ok {
		return
	}
	management := r.clusters.Management.GetClient()
	gvk, err := reference.Kind(ctx, management, schema.GroupKind{Group: discovery.APIGroup, Kind: discovery.Kind})
	if unusable := reference.Unusable(""); errors.As(err, &unusable) {
		r.problem(v1alpha1.ReasonReferenceKindUnusable, field, unusable)
		return
	}
	if err != nil {
		r.unread(field, err)
		return
	}
	r.kinds[gvk] = true
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := management.List(ctx, list, client.InNamespace(r.clusters.Cluster.Namespace), client.MatchingLabelsSelector{Selector: selector}, client.UnsafeDisableDeepCopy); err != nil {
		r.unread(field, err)
		return
	}
	inOrder(list.Items, func(o *unstructured.Unstructured) string { return o.GetName() }, func(object *unstructured.Unstructured) {
		if generated(object) || r.foreign(object) || !object.GetDeletionTimestamp().IsZero() {
			return
		}
		found, err := fromInfrastructure(object, r.prices)
		r.add(nameOf(gvk.Kind, object), found, err)
	})
}

// machineDeployments reads the MachineDeployments that discovery selects. The cache has
// only those of the served Cluster.
func (r *reader) machineDeployments(ctx context.Context, discovery *v1alpha1.MachineDeploymentDiscovery, cluster *clusterv1.Cluster) {
	if discovery == nil {
		return
	}
	const field = "spec.discovery.machineDeployments"
	selector, ok := r.selector(field, &discovery.Selector)
	if !ok {
		return
	}
	list := &clusterv1.MachineDeploymentList{}
	if err := r.clusters.Management.GetClient().List(ctx, list, client.InNamespace(r.clusters.Cluster.Namespace), client.MatchingLabelsSelector{Selector: selector}, client.UnsafeDisableDeepCopy); err != nil {
		r.unread(field, err)
		return
	}
	inOrder(list.Items, func(o *clusterv1.MachineDeployment) string { return o.Name }, func(deployment *clusterv1.MachineDeployment) {
		_, adopted := deployment.Annotations[v1alpha1.AdoptedAnnotation]
		if generated(deployment) && !adopted || !deployment.DeletionTimestamp.IsZero() || pattern.Named(r.template, deployment) {
			return // a pattern is only read
		}
		name := nameOf("MachineDeployment", deployment)
		if refused := (tenancy.NotAllowed{}); errors.As(r.clusters.Allowed.Adoption(deployment), &refused) {
			r.problem(refused.Reason, name, refused)
			return
		}
		infrastructure, err := r.infrastructureOf(ctx, deployment)
		if err != nil {
			r.unread(field, err)
			return
		}
		found, err := fromMachineDeployment(deployment, infrastructure, r.template, r.prices)
		if contested := clients.ReplicasSetBy(deployment, cluster); contested != nil {
			r.problem(v1alpha1.ReasonScalableResourceUnusable, name, contested)
			if !adopted || err != nil {
				return
			}
			// NodeClaims can still have its offering, as while it is paused.
			found.Offerings[0].Paused = true
		}
		r.add(name, found, err)
	})
}

// infrastructureOf returns the infrastructure template of a MachineDeployment; nil if it
// does not exist, or if Cluster API cannot use its kind.
func (r *reader) infrastructureOf(ctx context.Context, deployment *clusterv1.MachineDeployment) (*unstructured.Unstructured, error) {
	object, kind, err := reference.Existing(ctx, r.clusters.Management.GetClient(), deployment.Spec.Template.Spec.InfrastructureRef, deployment.Namespace)
	if !kind.Empty() {
		r.kinds[kind] = true
	}
	return object, err
}

// add adds a discovered type, or the problem with it.
func (r *reader) add(name string, found Type, err error) {
	if err == nil {
		err = usable(found.Capacity, r.template.Spec.Kubelet)
	}
	if err != nil {
		r.problem(v1alpha1.ReasonInstanceTypesInvalid, name, err)
		return
	}
	r.Discovered = append(r.Discovered, Source{Name: name, Type: found})
}

func (r *reader) problem(reason, name string, err error) {
	r.Problems = append(r.Problems, Problem{reason, name + ": " + err.Error()})
}

// unread records that objects could not be read. Several objects of one kind are one problem.
func (r *reader) unread(field string, err error) {
	r.Incomplete = true
	problem := Problem{v1alpha1.ReasonDiscoveryIncomplete, field + ": " + err.Error()}
	if !slices.Contains(r.Problems, problem) {
		r.Problems = append(r.Problems, problem)
	}
}

func (r *reader) selector(field string, selector *metav1.LabelSelector) (labels.Selector, bool) {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		r.problem(v1alpha1.ReasonInstanceTypesInvalid, field+".selector", err)
	}
	return parsed, err == nil
}

// generated reports whether an operator has generated an object, for any Cluster.
func generated(object client.Object) bool {
	return object.GetLabels()[v1alpha1.TemplateLabel] != ""
}

// foreign reports whether an object has the label of another Cluster. All Clusters of the
// namespace can use an object without the label.
func (r *reader) foreign(object client.Object) bool {
	name := object.GetLabels()[clusterv1.ClusterNameLabel]
	return name != "" && name != r.clusters.Cluster.Name
}

func nameOf(kind string, object client.Object) string {
	return kind + " " + client.ObjectKeyFromObject(object).String()
}

// inOrder calls a function for each object, sorted by name, because caches have no order.
func inOrder[T any](items []T, name func(*T) string, do func(*T)) {
	sorted := lo.Map(items, func(_ T, i int) *T { return &items[i] })
	slices.SortFunc(sorted, func(a, b *T) int { return strings.Compare(name(a), name(b)) })
	for _, item := range sorted {
		do(item)
	}
}
