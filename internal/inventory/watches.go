// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// Watches has the watches of the sources that templates need. Several goroutines can use it at once. Its methods can be
// called on nil, which counts nothing.
type Watches struct {
	// ctx ends all watches.
	ctx       context.Context //nolint:containedctx // Watches start whenever a template needs them, and end with the process.
	client    dynamic.Interface
	mapper    meta.RESTMapper
	namespace string
	changed   chan event.GenericEvent

	mu      sync.Mutex
	watches map[Source]*watch
	// needed has the sources of each template, by its name.
	needed map[string]sets.Set[Source]
}

// NewWatches returns watches in the management cluster, until the context ends. The namespace is that of the served Cluster.
func NewWatches(ctx context.Context, config *rest.Config, client *http.Client, mapper meta.RESTMapper, namespace string) (*Watches, error) {
	dynamicClient, err := dynamic.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("setting up the watches of inventories: %w", err)
	}
	return &Watches{
		ctx: ctx, client: dynamicClient, mapper: mapper, namespace: namespace, changed: make(chan event.GenericEvent, 1),
		watches: map[Source]*watch{}, needed: map[string]sets.Set[Source]{},
	}, nil
}

// Changed returns a channel that gets an event without an object when a count changes, for one reader. Several changes can
// be one event.
func (w *Watches) Changed() <-chan event.GenericEvent {
	if w == nil {
		return nil
	}
	return w.changed
}

// Notify sends an event to the reader of Changed.
func (w *Watches) Notify() {
	if w == nil {
		return
	}
	select {
	case w.changed <- event.GenericEvent{}:
	default: // one is waiting to be read
	}
}

// Templates returns the names of the templates that need a source.
func (w *Watches) Templates() []string {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.needed))
}

// Need sets the pools of a template. It starts the watches of their sources, and stops those that no template needs any more.
func (w *Watches) Need(template string, pools []Pool) {
	if w == nil {
		return
	}
	sources := countable(pools)
	w.mu.Lock()
	defer w.mu.Unlock()
	if sources.Equal(w.needed[template]) {
		return
	}
	w.needed[template] = sources
	if len(sources) == 0 {
		delete(w.needed, template)
	}
	for source := range sources {
		if w.watches[source] == nil {
			w.watches[source] = w.start(source)
		}
	}
	for source, watch := range w.watches {
		if !slices.ContainsFunc(slices.Collect(maps.Values(w.needed)), func(needed sets.Set[Source]) bool { return needed.Has(source) }) {
			watch.stop()
			delete(w.watches, source)
		}
	}
}

// mostSources is how many sources of a template are counted, because each has a watch.
const mostSources = 64

var errTooMany = fmt.Errorf("a template can have at most %d different sources: use the same expressions and selectors in several offerings", mostSources)

// countable returns the sources of pools that are counted, which are the first ones.
func countable(pools []Pool) sets.Set[Source] {
	sources := sets.New[Source]()
	for _, pool := range pools {
		if len(sources) < mostSources {
			sources.Insert(pool.Source)
		}
	}
	return sources
}

// Counts returns the counts of those pools whose count is known, and why others are not. It waits for the objects of a
// watch that has just started.
func (w *Watches) Counts(ctx context.Context, pools []Pool) (map[Pool]Count, map[Pool]error) {
	counts, unknown := map[Pool]Count{}, map[Pool]error{}
	if w == nil {
		return counts, unknown
	}
	sources := countable(pools)
	for _, pool := range pools {
		if !sources.Has(pool.Source) {
			unknown[pool] = errTooMany
			continue
		}
		w.mu.Lock()
		watch := w.watches[pool.Source]
		w.mu.Unlock()
		if watch == nil {
			continue // its template has just changed
		}
		count, err := watch.count(ctx, pool)
		if err != nil {
			unknown[pool] = err
			continue
		}
		counts[pool] = count
	}
	return counts, unknown
}
