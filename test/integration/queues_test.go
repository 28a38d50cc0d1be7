// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
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
	// due is when the work is handed to the controller's queue; zero if it is not to be handed over.
	due time.Time
	// priority is the highest one with which it was added since.
	priority        int
	queued, running bool
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
		return &queue[T]{created, limiter, queues, func(request T) work { return work{controller, name(request), request} }}
	}))
	return true
}

// queue is the queue of one controller. It keeps what is delayed, or is added while it is reconciled, and hands everything else to
// the queue of controller-runtime at once. That one does not report whether an addition came before or after it gave out
// the same request, so that it is not known what is left in it.
type queue[T comparable] struct {
	priorityqueue.PriorityQueue[T]
	limiter workqueue.TypedRateLimiter[T]
	queues  *queues
	work    func(T) work
}

// AddWithOpts implements priorityqueue.PriorityQueue, with the delays of controller-runtime
// (controller-runtime: pkg/controller/priorityqueue/priorityqueue.go, lockedAddWithOpts).
func (q *queue[T]) AddWithOpts(options priorityqueue.AddOpts, requests ...T) {
	for _, request := range requests {
		after := options.After
		if options.RateLimited {
			if limited := q.limiter.When(request); after == 0 || limited < after {
				after = limited
			}
		}
		q.queues.set(q.work(request), func(p *progress) {
			due := time.Now().Add(after)
			if p.queued {
				return
			}
			p.priority = max(p.priority, lo.FromPtr(options.Priority))
			if !p.due.IsZero() && !due.Before(p.due) {
				return
			}
			p.due = due
			if after > 0 {
				time.AfterFunc(after, func() { q.queues.set(q.work(request), func(p *progress) { q.handOver(request, p) }) })
			}
			q.handOver(request, p)
		})
	}
}

// handOver gives a request to the queue of controller-runtime, if it is due and is not being reconciled.
func (q *queue[T]) handOver(request T, p *progress) {
	if p.running || p.due.IsZero() || p.due.After(time.Now()) {
		return
	}
	q.PriorityQueue.AddWithOpts(priorityqueue.AddOpts{Priority: new(p.priority)}, request)
	*p = progress{queued: true}
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
		q.queues.set(q.work(request), func(p *progress) { p.queued, p.running = false, true })
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
	q.PriorityQueue.Done(request)
	q.queues.set(q.work(request), func(p *progress) {
		p.running = false
		q.handOver(request, p)
	})
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
		if strings.HasPrefix(w.name, prefix) && (p.queued || p.running || !p.due.IsZero() && !p.due.After(until)) {
			found = append(found, fmt.Sprintf("%s of %s, queued: %t, running: %t, due: %s", w.name, w.controller, p.queued, p.running, p.due))
		}
	}
	return found
}

var _ = Describe("The queues that specs wait for", func() {
	It("have no work left when the controllers have none", func(ctx SpecContext) {
		known := &queues{works: map[work]*progress{}}
		newQueue := func(_ string, limiter workqueue.TypedRateLimiter[int]) workqueue.TypedRateLimitingInterface[int] {
			return priorityqueue.New("test", func(o *priorityqueue.Opts[int]) { o.RateLimiter = limiter })
		}
		Expect(observe(known, reflect.ValueOf(&newQueue).Elem(), strconv.Itoa)).To(BeTrue())
		queue := newQueue("test", workqueue.NewTypedItemExponentialFailureRateLimiter[int](5*time.Millisecond, 1000*time.Second))

		var workers sync.WaitGroup
		for range 4 {
			workers.Go(func() {
				for request, shutdown := queue.Get(); !shutdown; request, shutdown = queue.Get() {
					switch rand.N(10) {
					case 0, 1:
						queue.AddRateLimited(request)
					case 2:
						queue.Forget(request)
						queue.AddAfter(request, rand.N(20*time.Millisecond))
					default:
						queue.Forget(request)
					}
					queue.Done(request)
				}
			})
		}
		for range 200 {
			var events sync.WaitGroup
			for range 4 {
				events.Go(func() {
					for range 50 {
						queue.Add(rand.N(8))
						time.Sleep(rand.N(100 * time.Microsecond))
					}
				})
			}
			events.Wait()
			Eventually(ctx, func() []string { return known.open("", time.Now().Add(time.Hour)) }).
				WithPolling(time.Millisecond).WithTimeout(10 * time.Second).Should(BeEmpty())
		}
		queue.ShutDown()
		workers.Wait()
	})
})
