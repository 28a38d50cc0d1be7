// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/link"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// lowered has the scalable resources whose replicas this process has lowered, as the API server returned them, until the
// cache has the same version or a later one. A plan that was made from the replicas before could link a Machine that a
// MachineSet, which was blocked, is about to delete.
//
// Of each resource that gets its first link by this process it reads the version of the API server, because a warm standby
// fills its caches before the previous leader writes for the last time.
type lowered struct {
	clusters *clients.Clusters

	mu sync.Mutex
	// resources has an entry for each resource that was read. It is nil if the cache is not behind.
	resources map[string]*scalable.Resource
}

func newLowered(clusters *clients.Clusters) *lowered {
	return &lowered{clusters: clusters, resources: map[string]*scalable.Resource{}}
}

// note stores a resource whose replicas were lowered.
func (l *lowered) note(resource *scalable.Resource) { l.set(resource.GetName(), resource) }

// forget removes what is known of a resource.
func (l *lowered) forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.resources, name)
}

// isSeen reports whether a resource, as the cache has it, is not older than its last lower replicas. One that does not
// exist has none.
func (l *lowered) isSeen(ctx context.Context, cached *scalable.Resource) (bool, error) {
	if cached == nil {
		return true, nil
	}
	latest, read := l.get(cached.GetName())
	if !read {
		object := scalable.NewObject(cached.Kind())
		if err := l.clusters.Management.GetAPIReader().Get(ctx, cached.Key(), object); client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("getting %s: %w", cached, err)
		}
		if latest = scalable.New(object); latest.Replicas() >= cached.Replicas() {
			latest = nil // the cache may lack writes of others, but no lower replicas
		}
	}
	if latest == nil || latest.GetUID() != cached.GetUID() || !link.IsLater(latest.API(), cached.API()) {
		l.set(cached.GetName(), nil)
		return true, nil
	}
	l.set(cached.GetName(), latest)
	return false, nil
}

func (l *lowered) get(name string) (latest *scalable.Resource, read bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	latest, read = l.resources[name]
	return latest, read
}

func (l *lowered) set(name string, latest *scalable.Resource) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resources[name] = latest
}
