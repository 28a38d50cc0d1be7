// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/karpenter/pkg/events"
	core "sigs.k8s.io/karpenter/pkg/operator/options"

	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/cloudprovider"
	"github.com/karpenter-capi/karpenter-capi/internal/connection"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/nodeclaim"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/providerid"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/scalableresource"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
	"github.com/karpenter-capi/karpenter-capi/test/fixture"
)

// process is one process of the operator: everything that it has in memory.
type process struct {
	simulation    *simulation
	cache         *cache
	client        client.Client
	cloudProvider *cloudprovider.CloudProvider
	controllers   []*controller
	ctx           context.Context
	connection    *connection.Connection
	watch         io.Closer
	// restart is whether it ends after its current action.
	restart bool
}

// crashed is the panic that ends a process in the middle of a reconcile.
type crashed struct{}

// newProcess starts the operator: its caches are filled, and everything in them is
// an event.
func newProcess(w *simulation) *process {
	p := &process{simulation: w, cache: newCache(w.server, kinds, staleBound, w.mode.staleness(), w.known), ctx: (&core.Options{}).ToContext(context.Background())}
	p.cache.outdated = w.clock.Now().Add(w.mode.outdatedFor())
	p.client = p.mutated(interceptor.NewClient(live{server: w.server}, p.intercept()))
	both := clusterOf{client: p.client, live: apiReader{process: p, Reader: live{server: w.server}}}
	p.connection = w.newConnection()
	clock := machineClock{w}
	clusters := &operator.Clusters{Cluster: prod, Workload: both, Management: both, Allowed: fixture.Allowed, ToManagement: p.connection, Timings: operator.ProductionTimings()}
	if w.hasty {
		clusters.Timings.Recovery = 0
	}
	catalog := catalog.New(clusters)
	p.cloudProvider = cloudprovider.New(clusters, catalog, clock)
	p.controllers = append(p.coreControllers(),
		&controller{name: "scalableresource", keys: p.resources, reconcile: byName(scalableresource.NewReconciler(clusters, catalog, silent{}, clock))},
		&controller{name: "nodeclaim", keys: p.resourcesOrLost, reconcile: byName(nodeclaim.NewReconciler(clusters, catalog, p.cloudProvider, silent{}, clock, noPods))},
		&controller{name: "providerid", keys: p.claimsWithMachine, reconcile: byName(providerid.NewReconciler(clusters, silent{}))},
	)
	for _, c := range p.controllers {
		c.due = map[string]time.Time{}
	}
	for _, kind := range kinds {
		for _, name := range sortedNames(p.cache.view[kind]) {
			object := p.cache.view[kind][name]
			p.notify(&change{kind: kindOf(object), name: object.GetName(), after: object})
		}
	}
	return p
}

// step lets each controller reconcile what is due. A crash ends it.
func (p *process) step() {
	w := p.simulation
	defer func() {
		if reason := recover(); reason != nil {
			if _, ok := reason.(crashed); !ok {
				panic(reason)
			}
			w.stop(p, "crashes")
		}
	}()
	p.as("provisioner", func() { p.provision() })
	for _, c := range w.mode.order(p.controllers) {
		p.catchUp()
		for _, key := range c.pop(w.clock.Now()) {
			p.catchUp()
			p.as(c.name, func() {
				if err := c.run(p.ctx, key, w.clock.Now()); err != nil {
					w.tracef("%s %s: %s", c.name, key, err)
				}
			})
			if p.restart {
				w.stop(p, "restarts")
				return
			}
		}
	}
}

// as sets who writes.
func (p *process) as(actor string, do func()) {
	p.simulation.server.actor = actor
	do()
}

// catchUp updates the caches, and passes their events to the controllers.
func (p *process) catchUp() {
	p.cache.catchUp(p.simulation.mode.staleness(), p.notify)
}

// notify enqueues what a change concerns.
func (p *process) notify(c *change) {
	now := p.simulation.clock.Now()
	for _, controller := range p.controllers {
		for _, key := range controller.keys(c) {
			if key != "" {
				controller.add(key, now.Add(p.simulation.mode.withhold()))
			}
		}
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
			return p.write("create", "", object, func(object client.Object) error { return c.Create(ctx, object, options...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			return p.write("update", "", object, func(object client.Object) error { return c.Update(ctx, object, options...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			return p.write("patch", "", object, func(object client.Object) error { return c.Patch(ctx, object, patch, options...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			return p.write("delete", "", object, func(object client.Object) error { return c.Delete(ctx, object, options...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, name string, object client.Object, options ...client.SubResourceUpdateOption) error {
			return p.write("update", name, object, func(object client.Object) error { return c.SubResource(name).Update(ctx, object, options...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, name string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			return p.write("patch", name, object, func(object client.Object) error { return c.SubResource(name).Patch(ctx, object, patch, options...) })
		},
	}
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

// clusterOf is a cluster like that of internal/operator.
type clusterOf struct {
	cluster.Cluster
	client client.Client
	live   client.Reader
}

func (c clusterOf) GetClient() client.Client       { return c.client }
func (c clusterOf) GetAPIReader() client.Reader    { return c.live }
func (c clusterOf) GetScheme() *runtime.Scheme     { return scheme.Scheme }
func (c clusterOf) GetRESTMapper() meta.RESTMapper { return c.client.RESTMapper() }

// silent discards events.
type silent struct{}

func (silent) Publish(...events.Event) {}

func noPods(string) []types.NamespacedName { return nil }

func byName(r reconcile.Reconciler) func(context.Context, string) (reconcile.Result, error) {
	return func(ctx context.Context, name string) (reconcile.Result, error) {
		return r.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
	}
}
