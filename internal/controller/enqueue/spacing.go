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

// urgency is how soon an event is handled.
type urgency struct {
	// window is the time in which the events of a burst are collected into one reconcile, and the shortest time between the
	// beginnings of two reconciles.
	window time.Duration
	// gapPerObject is by how much the reconciles of a resource begin further apart for each of its claims and Machines. A
	// reconcile takes a few microseconds for each of them.
	gapPerObject time.Duration
	// maxGap is the longest time between the beginnings of two reconciles.
	maxGap time.Duration
}

var (
	// ofNewClaim is for a claim that waits for a Machine. Karpenter creates many at once. With 1,000 claims and their Machines,
	// reconciles begin 250 ms apart.
	ofNewClaim = urgency{window: 100 * time.Millisecond, gapPerObject: 125 * time.Microsecond, maxGap: maxGap}
	// ofNewMachine is for a Machine for which a claim waits. Cluster API creates the Machines of a MachineSet one after the other.
	ofNewMachine = urgency{window: 20 * time.Millisecond, gapPerObject: 125 * time.Microsecond, maxGap: maxGap}
	// ofOthers is for all other events, for which no Pod waits. They are several for each claim. With 200 claims and their
	// Machines, reconciles begin 200 ms apart.
	ofOthers = urgency{window: 250 * time.Millisecond, gapPerObject: 500 * time.Microsecond, maxGap: maxGap}
)

// maxGap is the longest time between the beginnings of two reconciles of a scalable resource. Cluster API also works on each
// object once a second.
const maxGap = time.Second

// Spacing keeps the beginnings of two reconciles of a scalable resource, or of a template, apart that events trigger. A
// reconcile reads all claims and Machines of the resource, and each of them causes events. Without a gap
// that grows with their number, the CPU for a burst of claims would grow with the square of it. With the
// gap, a resource of any size uses about the same share of a core.
//
// The first event after a quiet time only waits for the window of its urgency, and no event waits longer than its maxGap.
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

// pass is when a reconcile began, and how many claims and Machines the last one has read.
type pass struct {
	began   time.Time
	objects int
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
		s.add(q, resource, ofOthers)
	}
}

// Begin stores that a reconcile of a resource begins.
func (s *Spacing) Begin(resource string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passes[resource] = pass{began: s.clock.Now(), objects: s.passes[resource].objects}
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
	last, ok := s.passes[resource]
	if !ok {
		last.began = s.clock.Now()
	}
	s.passes[resource] = pass{began: last.began, objects: objects}
}

// delay returns the time after which an event of a resource is handled.
func (s *Spacing) delay(resource string, of urgency) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, known := s.passes[resource]
	if !known {
		return of.window
	}
	gap := min(time.Duration(last.objects)*of.gapPerObject, of.maxGap)
	since := max(0, s.clock.Since(last.began)) // less than 0 if the clock was set back
	return max(of.window, gap-since)
}

// add enqueues a resource for an event. If it waits already, the earlier time counts.
func (s *Spacing) add(q queue, resource string, of urgency) {
	if resource != "" {
		q.AddAfter(request(resource), s.delay(resource, of))
	}
}

// ofMachines enqueues the resource of a Machine. A claim waits for a new one.
func (s *Spacing) ofMachines() handler.EventHandler {
	enqueued := s.of(clients.ResourceOf)
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			s.add(q, clients.ResourceOf(e.Object), ofNewMachine)
		},
		UpdateFunc: enqueued.Update, DeleteFunc: enqueued.Delete, GenericFunc: enqueued.Generic,
	}
}
