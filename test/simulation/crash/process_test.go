// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/cloudprovider"
	"github.com/karpenter-capi/karpenter-capi/internal/connection"
	controllers "github.com/karpenter-capi/karpenter-capi/internal/controller"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/registration"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// process is one process of the operator: everything that it has in memory.
type process struct {
	simulation    *simulation
	cache         *cache
	client        client.Client
	catalog       *catalog.Catalog
	cloudProvider *cloudprovider.CloudProvider
	controllers   []*queued
	ctx           context.Context
	connections   map[string]*connection.Connection // by cluster
	lost          map[string]time.Time              // when watches come back after an outage, by kind
	errors        map[string]string                 // the last error of each reconcile
	unanswered    map[string]string                 // a kind of the last request that was not answered, by cluster
	// restart is whether it ends after its current action.
	restart bool
	// dead is whether it has ended in the middle of its current action: from then on, no request of it does anything.
	dead bool
	// requests allows one request at a time.
	requests sync.Mutex
}

// errDead is the answer to each request of a process after its end. A panic would end only the goroutine that does the
// request.
var errDead = errors.New("the process has ended")

// newProcess starts the operator: its caches are filled, and everything in them is
// an event.
func newProcess(w *simulation) *process {
	p := &process{simulation: w, connections: w.newConnections(), lost: map[string]time.Time{}, unanswered: map[string]string{}, errors: map[string]string{},
		cache: newCache(w.server, kinds, staleBound, w.mode.staleness(), w.known), ctx: settings().Core.ToContext(context.Background())}
	p.cache.outdated = w.clock.Now().Add(w.mode.outdatedFor())
	p.client = p.mutated(interceptor.NewClient(live{server: w.server}, p.intercept()))
	p.register()
	for _, kind := range kinds {
		for _, name := range sortedNames(p.cache.view[kind]) {
			object := p.cache.view[kind][name]
			p.notify(&change{kind: kindOf(object), name: object.GetName(), after: object}, true)
		}
	}
	return p
}

// register registers the operator's controllers as production does, and keeps those that are driven.
func (p *process) register() {
	op := p.operator()
	p.catalog = catalog.New(op.Clusters)
	p.cloudProvider = cloudprovider.New(op.Clusters, p.catalog, op.Clock)
	registry := op.Manager.(*registry)
	all := append(p.coreControllers(registration.NewHook(op.Clusters, p.catalog)), controllers.Reconcilers(op, p.catalog, noPods)...)
	for _, c := range all {
		must(c.Register(p.ctx, registry))
	}
	p.controllers = slices.DeleteFunc(registry.controllers, func(c *queued) bool { return !slices.Contains(driven, c.name) })
	for _, c := range p.controllers {
		c.forgets = p.simulation.mutant != nil && p.simulation.mutant.forgets == c.name
	}
}

// operator returns what production gives to its controllers.
func (p *process) operator() *operator.Operator {
	w := p.simulation
	both := clusterOf{client: p.client, live: apiReader{process: p, Reader: live{server: w.server}}}
	clusters := &clients.Clusters{Cluster: prod, Workload: both, Management: both, Allowed: fixture.Allowed, Timings: clients.ProductionTimings(),
		ToWorkload: p.connections[connection.Workload], ToManagement: p.connections[connection.Management]}
	switch {
	case w.mutant == nil:
	case w.mutant.ignored == connection.Workload:
		clusters.ToWorkload = nil
	case w.mutant.ignored == connection.Management:
		clusters.ToManagement = nil
	}
	if w.hasty {
		clusters.Timings.Recovery = 0
	}
	return &operator.Operator{
		Manager: &registry{clusterOf: both, ctx: p.ctx}, Clusters: clusters, EventRecorder: silent{}, Clock: machineClock{simulation: w},
		InterruptionSignals: settings().InterruptionSignals,
	}
}

// settings are the operator's default settings.
var settings = sync.OnceValue(func() *operator.Options { return lo.Must(operator.ParseOptions()) })

// step lets each controller reconcile what is due. A crash ends it.
func (p *process) step() {
	w := p.simulation
	p.regainWatches()
	p.as("provisioner", func() { p.provision() })
	if p.ended() {
		return
	}
	for _, c := range w.mode.order(p.controllers) {
		p.catchUp()
		c.poll()
		p.takeAdded()
		for _, key := range c.pop(w.clock.Now()) {
			p.catchUp()
			p.as(c.name, func() {
				p.traceError(c.name+" "+key, c.run(p.ctx, key, w.clock.Now()))
			})
			p.takeAdded()
			if p.ended() {
				return
			}
		}
	}
}

// ended ends the process if it crashed in its last action, or restarts after it.
func (p *process) ended() bool {
	switch {
	case p.dead:
		p.simulation.stop(p, "crashes")
	case p.restart:
		p.simulation.stop(p, "restarts")
	}
	return p.dead || p.restart
}

// traceError traces the error of a reconcile, and not the same one again.
func (p *process) traceError(of string, err error) {
	if p.dead {
		return
	}
	text := ""
	if err != nil {
		text = connection.Message(err)
	}
	if text != "" && text != p.errors[of] {
		p.simulation.tracef("%s: %s", of, text)
	}
	p.errors[of] = text
}

// as sets who writes.
func (p *process) as(actor string, do func()) {
	p.simulation.server.actor = actor
	do()
}

// catchUp updates the caches, and passes their events to the controllers.
func (p *process) catchUp() {
	p.cache.catchUp(p.simulation.mode.staleness(), func(c *change) { p.notify(c, false) })
}

// notify passes a change in the cache to the event handlers of all controllers. In the initial list, objects are there
// from the beginning.
func (p *process) notify(c *change, initial bool) {
	for _, controller := range p.controllers {
		if p.simulation.mutant.misses(controller.name, c) {
			continue
		}
		controller.deliver(c, initial)
	}
	p.takeAdded()
}

// takeAdded enqueues what event handlers, or the reconcile of another controller, have added.
func (p *process) takeAdded() {
	for _, controller := range p.controllers {
		controller.takeAdded(p.simulation.clock.Now(), p.simulation.mode.withhold)
	}
}

// intercept reads from the cache and passes all writes to the simulation's plan.
func (p *process) intercept() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
			return p.cache.view.get(key, object)
		},
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			return p.cache.view.list(list, cacheIndexes, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if isDryRun(options) {
				return p.dryRun(ctx, c, object, options...)
			}
			return p.write("create", "", object, func(object client.Object) error { return c.Create(ctx, object, options...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			return p.write("update", "", object, func(object client.Object) error { return c.Update(ctx, object, options...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			return p.write("patch", "", object, func(object client.Object) error { return c.Patch(ctx, object, patch, options...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			verb, given := deletes, client.DeleteOptions{}
			given.ApplyOptions(options)
			if given.Preconditions != nil && given.Preconditions.ResourceVersion != nil {
				verb = deletesVersion
			}
			return p.write(verb, "", object, func(object client.Object) error { return c.Delete(ctx, object, options...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, name string, object client.Object, options ...client.SubResourceUpdateOption) error {
			return p.write("update", name, object, func(object client.Object) error { return c.SubResource(name).Update(ctx, object, options...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, name string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			return p.write("patch", name, object, func(object client.Object) error { return c.SubResource(name).Patch(ctx, object, patch, options...) })
		},
	}
}

// dryRun asks whether an object can be created. Several goroutines do that at once.
func (p *process) dryRun(ctx context.Context, c client.Client, object client.Object, options ...client.CreateOption) error {
	p.requests.Lock()
	defer p.requests.Unlock()
	if err := p.reach(kindOf(object)); err != nil {
		return err
	}
	return c.Create(ctx, object, options...)
}

// apiReader reads from the API server, and passes these reads to the simulation's plan.
type apiReader struct {
	process *process
	client.Reader
}

func (r apiReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if r.process.simulation.answersFromCache(object) {
		return r.process.client.Get(ctx, key, object, options...)
	}
	err := r.process.read(object, key.Name, func() error { return r.Reader.Get(ctx, key, object, options...) })
	if err == nil {
		r.process.simulation.changeRead(object)
	}
	return err
}

func (r apiReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if r.process.simulation.answersFromCache(list) {
		return r.process.client.List(ctx, list, options...)
	}
	return r.process.read(list, "", func() error { return r.Reader.List(ctx, list, options...) })
}

// silent discards events.
type silent struct{}

func (silent) Publish(...events.Event) {}

func noPods(string) []types.NamespacedName { return nil }
