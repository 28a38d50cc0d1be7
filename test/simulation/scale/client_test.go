// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
)

// store is a client that reads as the cache of controller-runtime does, from client-go's indexers, and
// whose writes succeed and change nothing. controller-runtime's fake client takes much longer for a
// read than the operator for its decisions.
type store struct {
	client.Client
	kinds map[reflect.Type]cache.Indexer
}

// indexers are the fields by which the operator lists objects from its caches.
var indexers = map[client.Object]cache.Indexers{
	&karpv1.NodeClaim{}: {
		clients.NodeClaimResourceField:   by(func(o client.Object) string { return o.GetAnnotations()[v1alpha1.ScalableResourceAnnotation] }),
		clients.NodeClaimProviderIDField: by(func(o client.Object) string { return o.(*karpv1.NodeClaim).Status.ProviderID }),
		clients.NodeClaimTemplateField:   by(func(o client.Object) string { return o.(*karpv1.NodeClaim).Spec.NodeClassRef.Name }),
	},
	&clusterv1.Machine{}: {
		clients.ResourceField:          by(clients.ResourceOf),
		clients.MachineClaimField:      by(func(o client.Object) string { return string(lifecycle.ClaimUID(o)) }),
		clients.MachineProviderIDField: by(func(o client.Object) string { return o.(*clusterv1.Machine).Spec.ProviderID }),
	},
	&clusterv1.MachineSet{}: {clients.ResourceField: by(clients.ResourceOf)},
}

func by(value func(client.Object) string) cache.IndexFunc {
	return func(object any) ([]string, error) { return []string{value(object.(client.Object))}, nil }
}

func newStore(objects ...client.Object) *store {
	s := &store{kinds: map[reflect.Type]cache.Indexer{}}
	for object, fields := range indexers {
		s.kinds[reflect.TypeOf(object)] = cache.NewIndexer(cache.MetaNamespaceKeyFunc, fields)
	}
	for _, object := range objects {
		kind := reflect.TypeOf(object)
		if s.kinds[kind] == nil {
			s.kinds[kind] = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
		}
		if err := s.kinds[kind].Add(object); err != nil {
			panic(err)
		}
	}
	return s
}

func (s *store) Get(_ context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	name := key.String()
	if key.Namespace == "" {
		name = key.Name
	}
	if indexer := s.kinds[reflect.TypeOf(into)]; indexer != nil {
		if object, found, _ := indexer.GetByKey(name); found {
			object := object.(client.Object)
			given := (&client.GetOptions{}).ApplyOptions(options)
			if given.UnsafeDisableDeepCopy == nil || !*given.UnsafeDisableDeepCopy {
				object = object.DeepCopyObject().(client.Object)
			}
			reflect.ValueOf(into).Elem().Set(reflect.ValueOf(object).Elem())
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: reflect.TypeOf(into).String()}, key.Name)
}

func (s *store) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	given := client.ListOptions{}
	given.ApplyOptions(options)
	items := reflect.ValueOf(list).Elem().FieldByName("Items")
	indexer := s.kinds[reflect.PointerTo(items.Type().Elem())]
	if indexer == nil {
		return nil
	}
	found := indexer.List()
	if given.FieldSelector != nil {
		field := given.FieldSelector.Requirements()[0]
		var err error
		if found, err = indexer.ByIndex(field.Field, field.Value); err != nil {
			return err
		}
	}
	var result []runtime.Object
	for _, object := range found {
		object := object.(client.Object)
		if given.LabelSelector != nil && !given.LabelSelector.Matches(labels.Set(object.GetLabels())) {
			continue
		}
		if given.UnsafeDisableDeepCopy == nil || !*given.UnsafeDisableDeepCopy {
			object = object.DeepCopyObject().(client.Object)
		}
		result = append(result, object)
	}
	return meta.SetList(list, result)
}

func (s *store) Create(context.Context, client.Object, ...client.CreateOption) error { return nil }
func (s *store) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return nil
}
func (s *store) Delete(context.Context, client.Object, ...client.DeleteOption) error { return nil }
func (s *store) Status() client.SubResourceWriter                                    { return status{} }
func (s *store) Scheme() *runtime.Scheme                                             { return scheme.Scheme }

type status struct{ client.SubResourceWriter }

func (status) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return nil
}
