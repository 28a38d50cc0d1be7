// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/cluster-api/util/contract"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// API groups of providers in Cluster API's contract.
const (
	// InfrastructureGroup is the group of machines, machine pools and their templates.
	InfrastructureGroup = "infrastructure.cluster.x-k8s.io"
	// BootstrapGroup is the group of bootstrap configurations and their templates.
	BootstrapGroup = "bootstrap.cluster.x-k8s.io"
	// ControlPlaneGroup is the group of control planes, of which the operator only reads the version.
	ControlPlaneGroup = "controlplane.cluster.x-k8s.io"
)

// groups are those of what is generated. The operator has rights to write them.
var groups = []string{InfrastructureGroup, BootstrapGroup}

// Kinds returns all namespaced kinds of infrastructure and bootstrap providers in the management cluster, in
// the API version that Kind returns. If a kind cannot be determined, it returns the others with an error.
// A kind without a namespace, such as VSphereClusterIdentity, has no templates and no copies of them, and the
// rights of the operator are those in a namespace.
func Kinds(ctx context.Context, management client.Reader, mapper meta.RESTMapper) ([]schema.GroupVersionKind, error) {
	definitions := CRDs()
	if err := management.List(ctx, definitions); err != nil {
		return nil, fmt.Errorf("listing CustomResourceDefinitions: %w", err)
	}
	var kinds []schema.GroupVersionKind
	var errs []error
	for i := range definitions.Items {
		definition := &definitions.Items[i]
		resource, group, _ := strings.Cut(definition.Name, ".")
		version, usable := contractVersion(schema.GroupKind{Group: group}, definition.Labels)
		if !usable || !slices.Contains(groups, group) {
			continue
		}
		kind, namespaced, err := kindFor(mapper, version.GroupVersion().WithResource(resource))
		if err != nil && !meta.IsNoMatchError(err) { // its CustomResourceDefinition has been deleted since
			errs = append(errs, fmt.Errorf("kind of CustomResourceDefinition %s: %w", definition.Name, err))
		}
		if err == nil && namespaced {
			kinds = append(kinds, kind)
		}
	}
	return kinds, errors.Join(errs...)
}

// kindFor returns the kind of a resource, and whether its objects are in a namespace.
func kindFor(mapper meta.RESTMapper, resource schema.GroupVersionResource) (schema.GroupVersionKind, bool, error) {
	kind, err := mapper.KindFor(resource)
	if err != nil {
		return schema.GroupVersionKind{}, false, err
	}
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return schema.GroupVersionKind{}, false, err
	}
	return kind, mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

// Listable reports whether the client has the right to list a namespaced kind in a namespace. An installation
// can be limited to the kinds in use, so that this is not an error.
func Listable(ctx context.Context, management client.Client, mapper meta.RESTMapper, kind schema.GroupVersionKind, namespace string) (bool, error) {
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return false, fmt.Errorf("resource of kind %s: %w", kind, err)
	}
	return may(ctx, management, mapping.Resource, namespace, "list")
}

// May reports whether the client has the right to a verb for a kind of a provider in a namespace.
func May(ctx context.Context, management client.Client, kind schema.GroupKind, namespace, verb string) (bool, error) {
	return may(ctx, management, schema.GroupVersionResource{Group: kind.Group, Resource: ResourceOf(kind)}, namespace, verb)
}

// ResourceOf returns the resource of a kind of a provider, as Cluster API derives it from the kind.
func ResourceOf(kind schema.GroupKind) string {
	resource, _, _ := strings.Cut(contract.CalculateCRDName(kind.Group, kind.Kind), ".")
	return resource
}

func may(ctx context.Context, management client.Client, resource schema.GroupVersionResource, namespace, verb string) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: verb, Group: resource.Group, Version: resource.Version, Resource: resource.Resource,
		},
	}}
	if err := management.Create(ctx, review); err != nil {
		return false, fmt.Errorf("reading the right to %s %s: %w", verb, resource.GroupResource(), err)
	}
	return review.Status.Allowed, nil
}
