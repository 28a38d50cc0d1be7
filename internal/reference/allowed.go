// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Listable reports whether the client has the right to list a namespaced kind in a namespace. An installation
// can be limited to the kinds in use, so that this is not an error.
func Listable(ctx context.Context, management client.Client, mapper meta.RESTMapper, kind schema.GroupVersionKind, namespace string) (bool, error) {
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return false, fmt.Errorf("resource of kind %s: %w", kind, err)
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: "list", Group: kind.Group, Version: kind.Version, Resource: mapping.Resource.Resource,
		},
	}}
	if err := management.Create(ctx, review); err != nil {
		return false, fmt.Errorf("reading the right to list %s: %w", mapping.Resource.GroupResource(), err)
	}
	return review.Status.Allowed, nil
}
