// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"maps"
	"slices"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// open are the requests that have not ended, and the queue that they are in.
type open struct {
	mu sync.Mutex
	// requests by resource.
	requests map[string]map[Request]bool
	// queue of the controller; nil before it has started.
	queue workqueue.TypedRateLimitingInterface[Request]
}

// source adds the requests to the queue of a controller that starts.
func (o *open) source() source.TypedSource[Request] {
	return source.TypedFunc[Request](func(_ context.Context, queue workqueue.TypedRateLimitingInterface[Request]) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.queue = queue
		for _, requests := range o.requests {
			for request := range requests {
				queue.Add(request)
			}
		}
		return nil
	})
}

// start adds a request, unless it is open.
func (o *open) start(request Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.requests[request.Resource] == nil {
		o.requests[request.Resource] = map[Request]bool{}
	}
	if o.requests[request.Resource][request] {
		return
	}
	o.requests[request.Resource][request] = true
	if o.queue != nil {
		o.queue.Add(request)
	}
}

// end removes a request.
func (o *open) end(request Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.requests[request.Resource], request)
	if len(o.requests[request.Resource]) == 0 {
		delete(o.requests, request.Resource)
	}
}

// of returns the open requests of a resource.
func (o *open) of(resource string) []Request {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Keys(o.requests[resource]))
}
