// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karpenter-capi/karpenter-capi/internal/controller/link"
)

// queues knows what is in the queues of controllers, including what they handle only after a delay, and what
// is being reconciled. Metrics lack what is delayed.
type queues struct {
	mu    sync.Mutex
	works map[work]*progress
}

// work is what a controller has to reconcile.
type work struct {
	controller, name string
	request          any
}

// progress is how far a controller is with its work.
type progress struct {
	// due is when it is reconciled at the earliest; zero if it is not in the queue.
	due     time.Time
	running bool
}

// manager returns a manager, of which the queues of all controllers that are added from now on are known.
func (q *queues) manager(mgr manager.Manager) manager.Manager { return observed{mgr, q} }

type observed struct {
	manager.Manager
	queues *queues
}

// Add implements manager.Manager.
func (o observed) Add(runnable manager.Runnable) error {
	// The options of a manager cannot set the queue. This is the option of a controller, in a type that is internal.
	if controller := reflect.Indirect(reflect.ValueOf(runnable)); controller.Kind() == reflect.Struct {
		if field := controller.FieldByName("NewQueue"); field.IsValid() {
			known := observe(o.queues, field, func(r reconcile.Request) string { return r.Name }) ||
				observe(o.queues, field, func(r link.Request) string { return r.Resource })
			Expect(known).To(BeTrue(), "a controller with requests of another type: %s", field.Type())
		}
	}
	return o.Manager.Add(runnable)
}

// observe makes a controller's queues known, if its requests have type T.
func observe[T comparable](queues *queues, newQueue reflect.Value, name func(T) string) bool {
	create, ok := newQueue.Interface().(func(string, workqueue.TypedRateLimiter[T]) workqueue.TypedRateLimitingInterface[T])
	if !ok {
		return false
	}
	newQueue.Set(reflect.ValueOf(func(controller string, limiter workqueue.TypedRateLimiter[T]) workqueue.TypedRateLimitingInterface[T] {
		defer GinkgoRecover()
		created, ok := create(controller, limiter).(priorityqueue.PriorityQueue[T])
		Expect(ok).To(BeTrue(), "the queue of %s has no priorities", controller)
		return &queue[T]{created, queues, func(request T) work { return work{controller, name(request), request} }}
	}))
	return true
}

// queue is the queue of one controller.
type queue[T comparable] struct {
	priorityqueue.PriorityQueue[T]
	queues *queues
	work   func(T) work
}

// evictionQueue tries a Pod that cannot be evicted again after at most evictionLimit (karpenter:
// pkg/controllers/node/termination/terminator/eviction.go, evictionQueueMaxDelay). With the delays of other limiters, a Pod that was
// tried more than eleven times would seem to stay in the queue.
const (
	evictionQueue = "eviction-queue"
	evictionLimit = 10 * time.Second
)

// AddWithOpts implements priorityqueue.PriorityQueue.
func (q *queue[T]) AddWithOpts(options priorityqueue.AddOpts, requests ...T) {
	for _, request := range requests {
		after := options.After
		if options.RateLimited {
			// This is how most limiters of the controllers begin, and none is faster, but one ends sooner.
			after = 5 * time.Millisecond << min(q.NumRequeues(request), 20)
			if q.work(request).controller == evictionQueue {
				after = min(after, evictionLimit)
			}
		}
		q.queues.set(q.work(request), func(p *progress) {
			if due := time.Now().Add(after); p.due.IsZero() || due.Before(p.due) {
				p.due = due
			}
		})
	}
	q.PriorityQueue.AddWithOpts(options, requests...)
}

// Add implements workqueue.TypedInterface.
func (q *queue[T]) Add(request T) { q.AddWithOpts(priorityqueue.AddOpts{}, request) }

// AddAfter implements workqueue.TypedDelayingInterface.
func (q *queue[T]) AddAfter(request T, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, request)
}

// AddRateLimited implements workqueue.TypedRateLimitingInterface.
func (q *queue[T]) AddRateLimited(request T) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, request)
}

// GetWithPriority implements priorityqueue.PriorityQueue.
func (q *queue[T]) GetWithPriority() (request T, priority int, shutdown bool) {
	request, priority, shutdown = q.PriorityQueue.GetWithPriority()
	if !shutdown {
		q.queues.set(q.work(request), func(p *progress) {
			p.running = true
			// Otherwise it was added again, with a delay, since it was taken from the queue.
			if !p.due.After(time.Now()) {
				p.due = time.Time{}
			}
		})
	}
	return request, priority, shutdown
}

// Get implements workqueue.TypedInterface.
func (q *queue[T]) Get() (request T, shutdown bool) {
	request, _, shutdown = q.GetWithPriority()
	return request, shutdown
}

// Done implements workqueue.TypedInterface.
func (q *queue[T]) Done(request T) {
	q.queues.set(q.work(request), func(p *progress) { p.running = false })
	q.PriorityQueue.Done(request)
}

func (q *queues) set(w work, change func(*progress)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p, ok := q.works[w]
	if !ok {
		p = &progress{}
		q.works[w] = p
	}
	change(p)
	if *p == (progress{}) {
		delete(q.works, w)
	}
}

// open returns the work for objects whose names begin with a prefix that is running, or begins until a time.
func (q *queues) open(prefix string, until time.Time) []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	var found []string
	for w, p := range q.works {
		if strings.HasPrefix(w.name, prefix) && (p.running || !p.due.IsZero() && !p.due.After(until)) {
			found = append(found, fmt.Sprintf("%s of %s, running: %t, due: %s", w.name, w.controller, p.running, p.due))
		}
	}
	return found
}
