// SPDX-License-Identifier: Apache-2.0

package enqueue

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/karpenter-capi/karpenter-capi/internal/clients"
)

const (
	// window is the time in which the events of a burst are collected into one reconcile:
	// Karpenter creates many claims at once, and a MachineSet creates many Machines.
	window = 100 * time.Millisecond
	// machineWindow is the same for new Machines, if the last reconcile began longer ago than the window.
	machineWindow = 20 * time.Millisecond
	// gapPerObject is by how much the reconciles of a resource begin further apart for each of its
	// claims and Machines: 250 ms for 1,000 claims with their Machines. A reconcile takes a few
	// microseconds for each of them.
	gapPerObject = 125 * time.Microsecond
	// maxGap is the longest time between the beginnings of two reconciles.
	maxGap = time.Second
)

// Spacing keeps the beginnings of two reconciles of a scalable resource apart that events trigger. A
// reconcile reads all claims and Machines of the resource, and each of them causes events. Without a gap
// that grows with their number, the CPU for a burst of claims would grow with the square of it. With the
// gap, a resource of any size uses about the same share of a core.
//
// The first event after a quiet time only waits for the window, or less if it is a new Machine, and no event waits longer than
// maxGap.
// Times that a reconciler requests itself, and retries after errors, are not delayed. A restart forgets
// the gaps, so that one reconcile is earlier.
type Spacing struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// queue is that of the controller, once it has started.
	queue queue
	// passes has the last reconcile of each resource.
	passes map[string]pass
	// bursts has the resources to which claims come.
	bursts map[string]arrivals
}

// pass is when a reconcile began, and the gap until the next one.
type pass struct {
	began time.Time
	gap   time.Duration
}

// NewSpacing returns the spacing of the reconciles of one controller.
func NewSpacing(clock clock.PassiveClock) *Spacing {
	return &Spacing{clock: clock, passes: map[string]pass{}, bursts: map[string]arrivals{}}
}

// Source lets Enqueue use the queue of the controller.
func (s *Spacing) Source() source.Source {
	return source.Func(func(_ context.Context, q queue) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.queue = q
		return nil
	})
}

// Enqueue enqueues a resource without an event. It does nothing before the controller has started, which then
// reconciles all resources.
func (s *Spacing) Enqueue(resource string) {
	s.mu.Lock()
	q := s.queue
	s.mu.Unlock()
	if q != nil {
		s.add(q, resource)
	}
}

// Begin stores that a reconcile of a resource begins.
func (s *Spacing) Begin(resource string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passes[resource] = pass{began: s.clock.Now(), gap: max(window, s.passes[resource].gap)}
	if burst, ok := s.bursts[resource]; ok && s.clock.Since(burst.last) > patience {
		delete(s.bursts, resource)
	}
}

// SetSize stores the number of claims and Machines that the reconcile of a resource has read. A resource without any is
// forgotten.
func (s *Spacing) SetSize(resource string, objects int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if objects == 0 {
		delete(s.passes, resource)
		delete(s.bursts, resource)
		return
	}
	gap := max(window, min(time.Duration(objects)*gapPerObject, maxGap))
	last, ok := s.passes[resource]
	if !ok {
		last.began = s.clock.Now()
	}
	s.passes[resource] = pass{began: last.began, gap: gap}
}

// delay returns the time after which an event of a resource is handled, which is at least the shortest.
func (s *Spacing) delay(resource string, shortest time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.passes[resource]                 // without one, there is no gap
	since := max(0, s.clock.Since(last.began)) // less than 0 if the clock was set back
	return max(shortest, last.gap-since)
}

// add enqueues a resource for an event.
func (s *Spacing) add(q queue, resource string) { s.addAfter(q, resource, window) }

// addAfter enqueues a resource for an event that waits for the shortest time at least.
func (s *Spacing) addAfter(q queue, resource string, shortest time.Duration) {
	if resource != "" {
		q.AddAfter(request(resource), s.delay(resource, shortest))
	}
}

// ofMachines enqueues the resource of a Machine, and does not wait for the window if it is new: a claim waits for its link.
func (s *Spacing) ofMachines() handler.EventHandler {
	enqueued := s.of(clients.ResourceOf)
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			s.addAfter(q, clients.ResourceOf(e.Object), machineWindow)
		},
		UpdateFunc: enqueued.Update, DeleteFunc: enqueued.Delete, GenericFunc: enqueued.Generic,
	}
}
