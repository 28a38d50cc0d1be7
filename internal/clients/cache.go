// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
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
// Objects of providers, which are read as unstructured objects, and the metadata of Secrets are in caches of
// their own: if one of these kinds cannot be listed, only the templates that need it notice. Objects of
// providers without the label are in another cache than those with it, because no label selector selects
// both: base templates, which all Clusters of a namespace can share, and a control plane that Cluster API has
// not labelled yet.
type managementCache struct {
	cache.Cache
	labelled, unlabelled *onDemand
}

// newManagementCache returns the function that creates the cache for the served Cluster.
func newManagementCache(served types.NamespacedName, allowed tenancy.Rules) cache.NewCacheFunc {
	return func(config *rest.Config, options cache.Options) (cache.Cache, error) {
		options.DefaultNamespaces = map[string]cache.Config{served.Namespace: {}}
		options.DefaultTransform = cache.TransformStripManagedFields()
		options.Mapper = &mappings{RESTMapper: options.Mapper}

		unlabelled := options
		unlabelled.DefaultLabelSelector = withoutCluster()
		options.DefaultLabelSelector = labels.SelectorFromSet(labels.Set{clusterv1.ClusterNameLabel: served.Name})
		labelled := options
		if label := allowed.SecretLabel; label != nil {
			// Only the names of these Secrets are read, and nothing else of any Secret.
			labelled.ByObject = map[client.Object]cache.ByObject{SecretMetadata(): {Label: label}}
		}
		options.ByObject = map[client.Object]cache.ByObject{
			&clusterv1.Cluster{}:           {Label: labels.Everything(), Field: fields.OneTermEqualSelector("metadata.name", served.Name)},
			&clusterv1.MachineDeployment{}: {Transform: stripMostManagedFields()},
			reference.CRD():                {Label: labels.Everything()},
		}
		var parts []cache.Cache
		for _, of := range []cache.Options{options, labelled, unlabelled} {
			part, err := cache.New(config, of)
			if err != nil {
				return nil, err
			}
			parts = append(parts, part)
		}
		return managementCache{parts[0], newOnDemand(parts[1]), newOnDemand(parts[2])}, nil
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
	if _, ofProvider := object.(*unstructured.Unstructured); ofProvider {
		err := c.labelled.Get(ctx, key, object, options...)
		if apierrors.IsNotFound(err) {
			return c.unlabelled.Get(ctx, key, object, options...)
		}
		return err
	}
	return c.partOf(object).Get(ctx, key, object, options...)
}

// List implements client.Reader.
func (c managementCache) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	objects, ofProvider := list.(*unstructured.UnstructuredList)
	if !ofProvider {
		return c.partOf(list).List(ctx, list, options...)
	}
	if err := c.labelled.List(ctx, list, options...); err != nil {
		return err
	}
	others := &unstructured.UnstructuredList{}
	others.SetGroupVersionKind(objects.GroupVersionKind())
	if err := c.unlabelled.List(ctx, others, options...); err != nil {
		return err
	}
	objects.Items = append(objects.Items, others.Items...)
	return nil
}

// partOf returns the cache with a kind that is not of a provider.
func (c managementCache) partOf(object runtime.Object) cache.Cache {
	switch object.(type) {
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		if kind := object.GetObjectKind().GroupVersionKind(); kind.Group == "" {
			return c.labelled // Secrets
		}
	}
	return c.Cache
}

// GetInformer implements cache.Informers. If an object gets the label or loses it, the handlers see that it
// is deleted and created, in any order.
func (c managementCache) GetInformer(ctx context.Context, object client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	if _, ofProvider := object.(*unstructured.Unstructured); !ofProvider {
		return c.partOf(object).GetInformer(ctx, object, options...)
	}
	labelled, err := c.labelled.GetInformer(ctx, object, options...)
	if err != nil {
		return nil, err
	}
	unlabelled, err := c.unlabelled.GetInformer(ctx, object, options...)
	if err != nil {
		return nil, err
	}
	return informers{labelled, unlabelled}, nil
}

// RemoveInformer implements cache.Informers.
func (c managementCache) RemoveInformer(ctx context.Context, object client.Object) error {
	if _, ofProvider := object.(*unstructured.Unstructured); !ofProvider {
		return c.partOf(object).RemoveInformer(ctx, object)
	}
	return errors.Join(c.labelled.RemoveInformer(ctx, object), c.unlabelled.RemoveInformer(ctx, object))
}

// Start implements cache.Informers.
func (c managementCache) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wait sync.WaitGroup
	defer wait.Wait()
	parts := []cache.Cache{c.Cache, c.labelled, c.unlabelled}
	ended := make(chan error, len(parts))
	for _, part := range parts {
		wait.Go(func() {
			err := part.Start(ctx)
			cancel() // one is of no use without the others
			ended <- err
		})
	}
	var errs []error
	for range parts {
		errs = append(errs, <-ended)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cache of the management cluster: %w", err)
	}
	return nil
}
