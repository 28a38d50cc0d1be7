// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/internal/controller/link"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// lowered is a scalable resource whose replicas this process has lowered, as the API server returned it, until the
// cache has the same version or a later one. A plan that was made from the replicas before could link a Machine that a
// MachineSet, which was blocked, is about to delete.
//
// For the first link of a resource, the process reads the version of the API server, because a warm standby
// fills its caches before the previous leader writes for the last time.
type lowered struct {
	// read is whether the API server was asked.
	read bool
	// latest is nil if the cache is not behind.
	latest *scalable.Resource
}

// note stores the resource whose replicas were lowered.
func (l *lowered) note(resource *scalable.Resource) { l.read, l.latest = true, resource }

// isSeen reports whether the cache has the last lower replicas of a resource, or the resource does not exist.
func (l *lowered) isSeen(ctx context.Context, live client.Reader, cached *scalable.Resource) (bool, error) {
	if cached == nil {
		return true, nil
	}
	if !l.read {
		object := scalable.NewObject(cached.Kind())
		if err := live.Get(ctx, cached.Key(), object); client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("getting %s: %w", cached, err)
		}
		if l.latest = scalable.New(object); l.latest.Replicas() >= cached.Replicas() {
			l.latest = nil // the cache may lack writes of others, but no lower replicas
		}
	}
	l.read = true
	if l.latest != nil && (l.latest.GetUID() != cached.GetUID() || !link.IsLater(l.latest.API(), cached.API())) {
		l.latest = nil
	}
	return l.latest == nil, nil
}
