// SPDX-License-Identifier: Apache-2.0

// Package reference resolves references of templates to objects in the management cluster.
// A reference has an API group and a kind. Like Cluster API, the package uses the API version
// that the contract label of the kind's CustomResourceDefinition names.
package reference

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/external"
	"sigs.k8s.io/cluster-api/util/contract"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// contracts are the versions of Cluster API's contract that Cluster API supports, newest
// first (Cluster API: internal/contract/version.go).
var contracts = []string{"v1beta2", "v1beta1"}

// Unusable is why Cluster API cannot use a kind.
type Unusable string

// Error returns the reason and how to fix it.
func (u Unusable) Error() string { return string(u) }

// CRD returns an empty CustomResourceDefinition with only metadata, which is sufficient here.
func CRD() *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}}
}

// CRDs returns an empty list of CustomResourceDefinitions with only metadata.
func CRDs() *metav1.PartialObjectMetadataList {
	definitions := &metav1.PartialObjectMetadataList{}
	definitions.SetGroupVersionKind(CRD().GroupVersionKind())
	return definitions
}

// Kind returns a kind with the API version that Cluster API uses. The error is Unusable if it is not a kind of
// a provider, if the management cluster has no such kind, or if the kind has no contract label. Cluster API's own kinds
// have that label, too, but no template may refer to them.
func Kind(ctx context.Context, management client.Reader, kind schema.GroupKind) (schema.GroupVersionKind, error) {
	if err := ofProvider(kind); err != nil {
		return schema.GroupVersionKind{}, err
	}
	definition := CRD()
	name := contract.CalculateCRDName(kind.Group, kind.Kind)
	if err := management.Get(ctx, types.NamespacedName{Name: name}, definition); err != nil {
		if apierrors.IsNotFound(err) {
			return schema.GroupVersionKind{}, Unusable(fmt.Sprintf("the management cluster has no kind %s (CustomResourceDefinition %s): install its provider, or correct apiGroup and kind", kind, name))
		}
		return schema.GroupVersionKind{}, fmt.Errorf("getting CustomResourceDefinition %s: %w", name, err)
	}
	gvk, ok := contractVersion(kind, definition.GetLabels())
	if !ok {
		return schema.GroupVersionKind{}, Unusable(fmt.Sprintf("the CustomResourceDefinition of kind %s has no label cluster.x-k8s.io/%s, so Cluster API cannot use it: name a kind of machine or bootstrap templates of a provider", kind, contracts[0]))
	}
	return gvk, nil
}

// contractVersion returns the API version of a kind that Cluster API uses, from the labels
// of its CRD: the latest version of the newest contract.
func contractVersion(kind schema.GroupKind, labels map[string]string) (schema.GroupVersionKind, bool) {
	for _, contract := range contracts {
		if versions := labels[clusterv1.GroupVersion.Group+"/"+contract]; versions != "" {
			latest := slices.MaxFunc(strings.Split(versions, "_"), version.CompareKubeAwareVersionStrings)
			return kind.WithVersion(latest), true
		}
	}
	return schema.GroupVersionKind{}, false
}

// Unlisted is the error for a kind of which the cache has no objects, because the API server has not listed them.
type Unlisted struct {
	Kind schema.GroupKind
	// Awaited reports that the list can still arrive: with thousands of objects, a busy API server needs longer than a read waits.
	Awaited bool
}

// Error names the kind, and what can be wrong with it.
func (u Unlisted) Error() string {
	return fmt.Sprintf("objects of kind %s cannot be listed in the management cluster: check that the operator has the rights to list and watch them, and that the conversion webhook of the kind answers", u.Kind)
}

// ofProvider returns an error for kinds of other API groups than those of providers.
func ofProvider(kind schema.GroupKind) error {
	if slices.Contains(groups, kind.Group) || kind.Group == ControlPlaneGroup {
		return nil
	}
	return Unusable(fmt.Sprintf("kind %s is of API group %s, which is not that of a provider: name a kind of %s", kind.Kind, kind.Group, strings.Join(groups, " or ")))
}

// Get returns the object that a reference names in a namespace, in the API version that Kind
// returns.
func Get(ctx context.Context, management client.Reader, ref clusterv1.ContractVersionedObjectReference, namespace string) (*unstructured.Unstructured, error) {
	if err := ofProvider(ref.GroupKind()); err != nil {
		return nil, err
	}
	return external.GetObjectFromContractVersionedRef(ctx, management, ref, namespace)
}

// Existing returns the object that a reference names in a namespace, and its kind. The object is nil if it does not exist, or if
// Cluster API cannot use its kind, which is then empty.
func Existing(ctx context.Context, management client.Reader, ref clusterv1.ContractVersionedObjectReference, namespace string) (*unstructured.Unstructured, schema.GroupVersionKind, error) {
	gvk, err := Kind(ctx, management, ref.GroupKind())
	if unusable := Unusable(""); errors.As(err, &unusable) {
		return nil, gvk, nil
	}
	if err != nil {
		return nil, gvk, err
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	key := types.NamespacedName{Namespace: namespace, Name: ref.Name}
	if err := management.Get(ctx, key, object); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, gvk, nil
		}
		return nil, gvk, fmt.Errorf("getting %s %s: %w", ref.Kind, key, err)
	}
	return object, gvk, nil
}

// Shared returns the same as Get, without a copy: the object is shared with the cache and must not be
// changed. It is for reconciles that read the objects of many Machines.
func Shared(ctx context.Context, management client.Reader, ref clusterv1.ContractVersionedObjectReference, namespace string) (*unstructured.Unstructured, error) {
	return Get(ctx, sharing{management}, ref, namespace)
}

// sharing reads from a cache without a copy.
type sharing struct{ client.Reader }

// Get implements client.Reader.
func (s sharing) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	return s.Reader.Get(ctx, key, into, append(options, client.UnsafeDisableDeepCopy)...)
}

// ContractChanged lets through changes of a CustomResourceDefinition that can change how a
// reference is resolved.
func ContractChanged() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{})
}
