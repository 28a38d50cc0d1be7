// SPDX-License-Identifier: Apache-2.0

package enqueue

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Kinds are the watches of a controller for kinds that templates refer to. They are added on
// first use, because these kinds are not known before.
type Kinds struct {
	controller controller.Controller
	cache      cache.Cache

	mu    sync.Mutex
	known map[schema.GroupVersionKind]bool
	// metadata are the kinds of which only the metadata is watched.
	metadata map[schema.GroupVersionKind]bool
}

// NewKinds returns the watches of a controller. Those of the given kinds exist already.
func NewKinds(controller controller.Controller, cache cache.Cache, known ...schema.GroupVersionKind) *Kinds {
	k := &Kinds{controller: controller, cache: cache, known: map[schema.GroupVersionKind]bool{}, metadata: map[schema.GroupVersionKind]bool{}}
	for _, gvk := range known {
		k.known[gvk] = true
	}
	return k
}

// List returns the kinds that are watched.
func (k *Kinds) List() []schema.GroupVersionKind {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Keys(k.known))
}

// Watch watches a kind, unless it is watched already.
func (k *Kinds) Watch(gvk schema.GroupVersionKind, handler handler.EventHandler) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known[gvk] {
		return nil
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	if err := k.controller.Watch(source.Kind[client.Object](k.cache, object, handler, described())); err != nil {
		return fmt.Errorf("watching %s: %w", gvk, err)
	}
	k.known[gvk] = true
	return nil
}

// WatchMetadata watches whether objects of a kind exist, by their metadata, unless it does already. The watch is
// added on first use, so that a missing right only concerns templates.
func (k *Kinds) WatchMetadata(object *metav1.PartialObjectMetadata, handler handler.EventHandler) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	gvk := object.GroupVersionKind()
	if k.metadata[gvk] {
		return nil
	}
	exists := predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
	if err := k.controller.Watch(source.Kind[client.Object](k.cache, object, handler, exists)); err != nil {
		return fmt.Errorf("watching the metadata of %s: %w", gvk, err)
	}
	k.metadata[gvk] = true
	return nil
}

// described lets through what bears on a template: the spec of an object, and what describes the
// instance type that it is (see package catalog), which is in labels, annotations and status.
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
