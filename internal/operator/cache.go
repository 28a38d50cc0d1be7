// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/tenancy"
)

// managementCache is the cache of the management cluster. It has no objects of other Clusters in the
// namespace of the served one: the API server selects objects by the label that Cluster API and all
// providers set.
//
// Objects of providers are read as unstructured objects. Those without the label are in a second cache,
// because no label selector selects both: base templates, which all Clusters of a namespace can share, and
// a control plane that Cluster API has not labelled yet.
type managementCache struct {
	cache.Cache
	unlabelled cache.Cache
}

// newManagementCache returns the function that creates the cache for the served Cluster.
func newManagementCache(served types.NamespacedName, allowed tenancy.Rules) cache.NewCacheFunc {
	return func(config *rest.Config, options cache.Options) (cache.Cache, error) {
		options.DefaultNamespaces = map[string]cache.Config{served.Namespace: {}}
		options.DefaultTransform = cache.TransformStripManagedFields()

		unlabelled := options
		unlabelled.DefaultLabelSelector = withoutCluster()
		shared, err := cache.New(config, unlabelled)
		if err != nil {
			return nil, err
		}
		options.DefaultLabelSelector = labels.SelectorFromSet(labels.Set{clusterv1.ClusterNameLabel: served.Name})
		options.ByObject = map[client.Object]cache.ByObject{
			&clusterv1.Cluster{}:           {Label: labels.Everything(), Field: fields.OneTermEqualSelector("metadata.name", served.Name)},
			&clusterv1.MachineDeployment{}: {Transform: stripMostManagedFields()},
			reference.CRD():                {Label: labels.Everything()},
		}
		if label := allowed.SecretLabel; label != nil {
			// Only the names of these Secrets are read, and nothing else of any Secret.
			options.ByObject[SecretMetadata()] = cache.ByObject{Label: label}
		}
		own, err := cache.New(config, options)
		return managementCache{own, shared}, err
	}
}

// withoutCluster selects the objects that belong to no Cluster.
func withoutCluster() labels.Selector {
	requirement, err := labels.NewRequirement(clusterv1.ClusterNameLabel, selection.DoesNotExist, nil)
	if err != nil {
		panic(err) // the label is a constant
	}
	return labels.NewSelector().Add(*requirement)
}

// Get implements client.Reader.
func (c managementCache) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	err := c.Cache.Get(ctx, key, object, options...)
	if _, ofProvider := object.(*unstructured.Unstructured); ofProvider && apierrors.IsNotFound(err) {
		return c.unlabelled.Get(ctx, key, object, options...)
	}
	return err
}

// List implements client.Reader.
func (c managementCache) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := c.Cache.List(ctx, list, options...); err != nil {
		return err
	}
	objects, ofProvider := list.(*unstructured.UnstructuredList)
	if !ofProvider {
		return nil
	}
	others := &unstructured.UnstructuredList{}
	others.SetGroupVersionKind(objects.GroupVersionKind())
	if err := c.unlabelled.List(ctx, others, options...); err != nil {
		return err
	}
	objects.Items = append(objects.Items, others.Items...)
	return nil
}

// GetInformer implements cache.Informers. If an object gets the label or loses it, the handlers see that it
// is deleted and created, in any order.
func (c managementCache) GetInformer(ctx context.Context, object client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	own, err := c.Cache.GetInformer(ctx, object, options...)
	if _, ofProvider := object.(*unstructured.Unstructured); !ofProvider || err != nil {
		return own, err
	}
	shared, err := c.unlabelled.GetInformer(ctx, object, options...)
	if err != nil {
		return nil, err
	}
	return informers{own, shared}, nil
}

// RemoveInformer implements cache.Informers.
func (c managementCache) RemoveInformer(ctx context.Context, object client.Object) error {
	return errors.Join(c.Cache.RemoveInformer(ctx, object), c.unlabelled.RemoveInformer(ctx, object))
}

// Start implements cache.Informers.
func (c managementCache) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wait sync.WaitGroup
	defer wait.Wait()
	ended := make(chan error, 2)
	for _, part := range []cache.Cache{c.Cache, c.unlabelled} {
		wait.Go(func() {
			err := part.Start(ctx)
			cancel() // one is of no use without the other
			ended <- err
		})
	}
	if err := errors.Join(<-ended, <-ended); err != nil {
		return fmt.Errorf("cache of the management cluster: %w", err)
	}
	return nil
}

// WaitForCacheSync implements cache.Informers.
func (c managementCache) WaitForCacheSync(ctx context.Context) bool {
	return c.Cache.WaitForCacheSync(ctx) && c.unlabelled.WaitForCacheSync(ctx)
}
