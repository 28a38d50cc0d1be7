// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/contract"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// contracts are the versions of Cluster API's contract that it understands,
// newest first (Cluster API: internal/contract/version.go).
var contracts = []string{"v1beta2", "v1beta1"}

// problem says why a reference cannot be used.
type problem struct{ reason, message string }

// resolve looks up what a reference names in the served Cluster's namespace. It
// returns a problem if that is not a template Cluster API can use, and sees to
// it that a change of it brings the next reconcile.
func (r *Reconciler) resolve(ctx context.Context, ref clusterv1.ContractVersionedObjectReference) (*problem, error) {
	kind := schema.GroupKind{Group: ref.APIGroup, Kind: ref.Kind}
	definition := crd()
	name := contract.CalculateCRDName(kind.Group, kind.Kind)
	if err := r.clusters.Management.GetClient().Get(ctx, types.NamespacedName{Name: name}, definition); err != nil {
		if apierrors.IsNotFound(err) {
			return &problem{v1alpha1.ReasonReferenceKindUnusable, fmt.Sprintf("the management cluster has no kind %s (CustomResourceDefinition %s): install the provider it belongs to, or mend apiGroup and kind", kind, name)}, nil
		}
		return nil, fmt.Errorf("getting CustomResourceDefinition %s: %w", name, err)
	}
	gvk, ok := contractVersion(kind, definition.GetLabels())
	if !ok {
		return &problem{v1alpha1.ReasonReferenceKindUnusable, fmt.Sprintf("kind %s has no label cluster.x-k8s.io/%s, so Cluster API cannot use it: is it a provider's machine or bootstrap template?", kind, contracts[0])}, nil
	}
	if err := r.watches.add(gvk); err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	key := types.NamespacedName{Namespace: r.clusters.Cluster.Namespace, Name: ref.Name}
	if err := r.clusters.Management.GetClient().Get(ctx, key, object); err != nil {
		if apierrors.IsNotFound(err) {
			return &problem{v1alpha1.ReasonReferenceNotFound, fmt.Sprintf("%s %s does not exist: create it in the served Cluster's namespace, or mend the name", ref.Kind, key)}, nil
		}
		return nil, fmt.Errorf("getting %s %s: %w", ref.Kind, key, err)
	}
	if _, isTemplate, err := unstructured.NestedMap(object.Object, "spec", "template"); err != nil || !isTemplate {
		return &problem{v1alpha1.ReasonReferenceKindUnusable, fmt.Sprintf("%s %s is no template, for it has no spec.template: name a kind that ends in Template", ref.Kind, key)}, nil
	}
	return nil, nil
}

// contractVersion returns the API version of a kind that Cluster API uses, from
// the labels of its CRD: the newest contract, and of its versions the latest.
func contractVersion(kind schema.GroupKind, labels map[string]string) (schema.GroupVersionKind, bool) {
	for _, contract := range contracts {
		if versions := labels[clusterv1.GroupVersion.Group+"/"+contract]; versions != "" {
			latest := slices.MaxFunc(strings.Split(versions, "_"), version.CompareKubeAwareVersionStrings)
			return kind.WithVersion(latest), true
		}
	}
	return schema.GroupVersionKind{}, false
}

// watches are the watches of kinds that templates refer to. They are added on
// first use, for which kinds there will be is not known before.
type watches struct {
	controller controller.Controller
	cache      cache.Cache
	handler    handler.EventHandler

	mu    sync.Mutex
	known map[schema.GroupVersionKind]bool
}

// kinds returns the kinds that are watched.
func (w *watches) kinds() []schema.GroupVersionKind {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.known))
}

func (w *watches) add(gvk schema.GroupVersionKind) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.known[gvk] {
		return nil
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	if err := w.controller.Watch(source.Kind[client.Object](w.cache, object, w.handler, predicate.GenerationChangedPredicate{})); err != nil {
		return fmt.Errorf("watching %s: %w", gvk, err)
	}
	if w.known == nil {
		w.known = map[schema.GroupVersionKind]bool{}
	}
	w.known[gvk] = true
	return nil
}
