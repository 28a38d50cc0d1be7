// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/internal/reference"
)

// patience is how long reads wait for the first objects of a kind, from the first read of the kind. A kind
// whose objects the API server cannot list never has them: the operator lacks the right, or the conversion
// webhook of the kind does not answer.
const patience = 5 * time.Second

// awaited is how long the first list of a kind can take, from the first read of the kind.
const awaited = time.Minute

// onDemand is a cache of kinds that only some templates need. It starts to watch a kind with the first read. A
// read of a kind that cannot be listed returns reference.Unlisted, and only the first ones wait before they do.
type onDemand struct {
	cache.Cache

	mu sync.Mutex
	// reads are the times of the first read of each kind.
	reads map[schema.GroupVersionKind]time.Time
}

func newOnDemand(of cache.Cache) *onDemand {
	return &onDemand{Cache: of, reads: map[schema.GroupVersionKind]time.Time{}}
}

// Get implements client.Reader.
func (c *onDemand) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if err := c.await(ctx, object); err != nil {
		return err
	}
	return c.Cache.Get(ctx, key, object, options...)
}

// List implements client.Reader.
func (c *onDemand) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := c.await(ctx, list); err != nil {
		return err
	}
	return c.Cache.List(ctx, list, options...)
}

// await waits until the cache has the objects of a kind. It returns reference.Unlisted if it does not have them in
// time.
func (c *onDemand) await(ctx context.Context, object runtime.Object) error {
	kind := object.GetObjectKind().GroupVersionKind()
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	informer, err := c.GetInformer(ctx, like(object, kind), cache.BlockUntilSynced(false))
	if err != nil || informer.HasSynced() {
		return err
	}
	first := c.firstRead(kind)
	ctx, cancel := context.WithDeadline(ctx, first.Add(patience))
	defer cancel()
	if !toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return reference.Unlisted{Kind: kind.GroupKind(), Awaited: time.Since(first) < awaited}
	}
	return nil
}

func (c *onDemand) firstRead(kind schema.GroupVersionKind) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	first, known := c.reads[kind]
	if !known {
		first = time.Now()
		c.reads[kind] = first
	}
	return first
}

// like returns an object of a kind in the form of an object or list.
func like(object runtime.Object, kind schema.GroupVersionKind) client.Object {
	if _, unknown := object.(runtime.Unstructured); unknown {
		item := &unstructured.Unstructured{}
		item.SetGroupVersionKind(kind)
		return item
	}
	return SecretMetadata()
}
