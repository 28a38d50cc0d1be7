// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// problem says why a reference cannot be used.
type problem struct{ reason, message string }

// resolve looks up what a reference names in the served Cluster's namespace. It
// returns a problem if Cluster API cannot use that, or it is not accepted, and sees to
// it that a change of it, or of what is made of it, brings the next reconcile.
func (r *Reconciler) resolve(ctx context.Context, ref clusterv1.ContractVersionedObjectReference, kind scalable.Kind, accepts func(*unstructured.Unstructured) error) (*problem, error) {
	gvk, err := reference.Kind(ctx, r.clusters.Management.GetClient(), schema.GroupKind{Group: ref.APIGroup, Kind: ref.Kind})
	if unusable := reference.Unusable(""); errors.As(err, &unusable) {
		return &problem{v1alpha1.ReasonReferenceKindUnusable, unusable.Error()}, nil
	}
	if err != nil {
		return nil, err
	}
	if err := r.watches.add(gvk, later(r.ofReferenced)); err != nil {
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
	if err := accepts(object); err != nil {
		return &problem{v1alpha1.ReasonReferenceKindUnusable, err.Error()}, nil
	}
	return nil, r.watches.add(kind.MadeOf(gvk), later(r.ofGenerated))
}

// watches are the watches of kinds that templates refer to. They are added on
// first use, for which kinds there will be is not known before.
type watches struct {
	controller controller.Controller
	cache      cache.Cache

	mu    sync.Mutex
	known map[schema.GroupVersionKind]bool
}

// kinds returns the kinds that are watched.
func (w *watches) kinds() []schema.GroupVersionKind {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.known))
}

// add watches a kind, unless it is watched already.
func (w *watches) add(gvk schema.GroupVersionKind, handler handler.EventHandler) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.known[gvk] {
		return nil
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	if err := w.controller.Watch(source.Kind[client.Object](w.cache, object, handler, described())); err != nil {
		return fmt.Errorf("watching %s: %w", gvk, err)
	}
	if w.known == nil {
		w.known = map[schema.GroupVersionKind]bool{}
	}
	w.known[gvk] = true
	return nil
}

// described lets through what bears on a template: its spec, and what tells of the
// instance type that it is (see internal/catalog), which is in labels, annotations
// and status.
func described() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, isTemplate := e.ObjectOld.(*unstructured.Unstructured)
		after, isStill := e.ObjectNew.(*unstructured.Unstructured)
		return !isTemplate || !isStill || before.GetGeneration() != after.GetGeneration() ||
			!maps.Equal(before.GetLabels(), after.GetLabels()) || !maps.Equal(before.GetAnnotations(), after.GetAnnotations()) ||
			!equality.Semantic.DeepEqual(before.Object["status"], after.Object["status"]) ||
			!before.GetDeletionTimestamp().Equal(after.GetDeletionTimestamp())
	}}
}
