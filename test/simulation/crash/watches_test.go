// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	events "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// watch is one watch of a controller, with the predicates and the handler of production.
type watch[request comparable] struct {
	kind       string
	predicates []predicate.Predicate
	handler    handler.TypedEventHandler[client.Object, request]
}

// signal is a source of a controller that is a channel, with the handler of production.
type signal[request comparable] struct {
	from    <-chan events.GenericEvent
	handler handler.TypedEventHandler[client.Object, request]
}

// watches are those of a controller that is not started. Such a controller only collects its sources, also those that
// it adds later, so everything happens in the one goroutine of the simulation.
type watches[request comparable] struct {
	ctx     context.Context
	queue   workqueue.TypedRateLimitingInterface[request]
	sources *[]source.TypedSource[request]
	begun   int // how many of the sources
	known   []watch[request]
	signals []signal[request]
	others  []string // the types of sources that have no kind
}

// capture returns a controller of production with a queue of the simulation. (controller-runtime v0.24:
// pkg/internal/controller/controller.go, pkg/internal/source/kind.go).
func capture[request comparable](ctx context.Context, c controller.TypedController[request]) *queued {
	internal := reflect.ValueOf(c).Elem()
	q := newQueued(strings.TrimPrefix(internal.FieldByName("Name").String(), "capi."))
	requests := map[string]request{}
	q.reconcile = func(ctx context.Context, key string) (reconcile.Result, error) {
		return c.Reconcile(ctx, requests[key])
	}
	w := &watches[request]{
		ctx: ctx, queue: &additions[request]{queued: q, requests: requests},
		sources: (*[]source.TypedSource[request])(unsafe.Pointer(internal.FieldByName("startWatches").UnsafeAddr())), //nolint:gosec // Nothing else returns them.
	}
	q.deliver, q.poll, q.kinds = w.deliver, w.poll, w.kinds
	return q
}

// kinds returns the kinds that are watched, and what else there is of sources.
func (w *watches[request]) kinds() []string {
	var kinds []string
	for _, watch := range w.all() {
		kinds = append(kinds, watch.kind)
	}
	return slices.Compact(slices.Sorted(slices.Values(append(kinds, w.others...))))
}

// all returns the watches, and begins with those that were added since.
func (w *watches[request]) all() []watch[request] {
	for ; w.begun < len(*w.sources); w.begun++ {
		switch s := (*w.sources)[w.begun].(type) {
		case source.TypedFunc[request]:
			must(s.Start(w.ctx, w.queue))
		default:
			of := reflect.ValueOf(s).Elem()
			if strings.HasPrefix(of.Type().Name(), "channel[sigs.k8s.io/controller-runtime/pkg/client.Object,") {
				w.signals = append(w.signals, signal[request]{
					from:    *(*<-chan events.GenericEvent)(unsafe.Pointer(of.FieldByName("source").UnsafeAddr())),                         //nolint:gosec // Nothing else returns it.
					handler: *(*handler.TypedEventHandler[client.Object, request])(unsafe.Pointer(of.FieldByName("handler").UnsafeAddr())), //nolint:gosec // Nothing else returns it.
				})
				continue
			}
			if !strings.HasPrefix(of.Type().Name(), "Kind[") {
				w.others = append(w.others, of.Type().Name()[:strings.Index(of.Type().Name(), "[")])
				continue
			}
			w.known = append(w.known, watch[request]{
				kind:       watchedKind(of.FieldByName("Type").Interface().(client.Object)),
				predicates: of.FieldByName("Predicates").Interface().([]predicate.Predicate),
				handler:    of.FieldByName("Handler").Interface().(handler.TypedEventHandler[client.Object, request]),
			})
		}
	}
	return w.known
}

// deliver passes a change in the cache to the handlers of its kind. In the initial list, objects are there from the
// beginning.
func (w *watches[request]) deliver(c *change, initial bool) {
	for _, watch := range w.all() {
		if watch.kind == c.kind {
			watch.deliver(w.ctx, c, initial, w.queue)
		}
	}
}

// poll passes the events in channels to their handlers.
func (w *watches[request]) poll() {
	w.all()
	for _, s := range w.signals {
		select {
		case event := <-s.from:
			s.handler.Generic(w.ctx, event, w.queue)
		default:
		}
	}
}

func (w *watch[request]) deliver(ctx context.Context, c *change, initial bool, queue workqueue.TypedRateLimitingInterface[request]) {
	switch {
	case c.before == nil:
		e := events.CreateEvent{Object: c.after, IsInInitialList: initial}
		if w.passes(func(p predicate.Predicate) bool { return p.Create(e) }) {
			w.handler.Create(ctx, e, queue)
		}
	case c.after == nil:
		e := events.DeleteEvent{Object: c.before}
		if w.passes(func(p predicate.Predicate) bool { return p.Delete(e) }) {
			w.handler.Delete(ctx, e, queue)
		}
	default:
		e := events.UpdateEvent{ObjectOld: c.before, ObjectNew: c.after}
		if w.passes(func(p predicate.Predicate) bool { return p.Update(e) }) {
			w.handler.Update(ctx, e, queue)
		}
	}
}

func (w *watch[request]) passes(through func(predicate.Predicate) bool) bool {
	for _, p := range w.predicates {
		if !through(p) {
			return false
		}
	}
	return true
}

// watchedKind returns the kind under which the server has the objects of a watch. The only ones of which it has only
// metadata are CustomResourceDefinitions.
func watchedKind(object client.Object) string {
	if metadata, is := object.(*metav1.PartialObjectMetadata); is && metadata.Kind != "CustomResourceDefinition" {
		return metadata.Kind
	}
	return kindOf(object)
}

// additions is the queue of a controller as handlers see it, which only add to it.
type additions[request comparable] struct {
	workqueue.TypedRateLimitingInterface[request]
	queued   *queued
	requests map[string]request
}

// Add adds a request at once.
func (a *additions[request]) Add(r request) { a.AddAfter(r, 0) }

// AddAfter adds a request later. A round is the time in which everything can happen once, in any order, so shorter
// times are none.
func (a *additions[request]) AddAfter(r request, after time.Duration) {
	key := strings.TrimPrefix(fmt.Sprint(r), "/")
	a.requests[key] = r
	a.queued.note(key, after.Truncate(round))
}

// AddRateLimited adds a request after an error.
func (a *additions[request]) AddRateLimited(r request) { a.AddAfter(r, round) }
