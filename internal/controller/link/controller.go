// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"fmt"
	"time"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/enqueue"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

const (
	// concurrency is how many links are written at once. A link is one read and one write, and all claims of a
	// burst usually have one scalable resource, because Karpenter takes the cheapest offering.
	concurrency = 20
	// timeout limits the read and the write of a link.
	timeout = 30 * time.Second
)

// Object names one object, and no other that has its name later.
type Object struct {
	Name string
	UID  types.UID
}

// Request asks for one link.
type Request struct {
	// Resource is the name of the scalable resource of the claim and the Machine.
	Resource       string
	Claim, Machine Object
}

// Reconciler writes links.
type Reconciler struct {
	clusters *clients.Clusters
	recorder events.Recorder
	// ended is called with the resource of each request that has ended.
	ended  func(resource string)
	open   open
	recent recent
}

// NewReconciler returns the reconciler for the served Cluster.
func NewReconciler(clusters *clients.Clusters, recorder events.Recorder) *Reconciler {
	return &Reconciler{clusters: clusters, recorder: recorder, ended: func(string) {}, open: open{requests: map[string]map[Request]bool{}}}
}

// OnEnd sets what is called with the resource of each request that has ended.
func (r *Reconciler) OnEnd(ended func(resource string)) { r.ended = ended }

// Register adds the reconciler to a manager.
func (r *Reconciler) Register(_ context.Context, mgr manager.Manager) error {
	return builder.TypedControllerManagedBy[Request](mgr).Named("capi.link").
		WithOptions(controller.TypedOptions[Request]{
			MaxConcurrentReconciles: concurrency,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[Request](enqueue.MinRetry, enqueue.MaxRetry),
			ReconciliationTimeout:   timeout,
		}).
		WatchesRawSource(r.open.source()).
		Complete(r)
}

// Start asks for a link, unless it is open, and returns at once.
func (r *Reconciler) Start(request Request) { r.open.start(request) }

// Open returns the requests of a resource that have not ended, in any order.
func (r *Reconciler) Open(resource string) []Request { return r.open.of(resource) }

// +kubebuilder:rbac:roleName=workload-role,groups=karpenter.sh,resources=nodeclaims,verbs=get
// +kubebuilder:rbac:roleName=management-role,groups=cluster.x-k8s.io,resources=machines,verbs=get;list;watch;patch

// Reconcile writes one link. After an error the request stays open.
func (r *Reconciler) Reconcile(ctx context.Context, request Request) (reconcile.Result, error) {
	if err := r.write(ctx, request); err != nil {
		return reconcile.Result{}, err
	}
	r.open.end(request)
	r.ended(request.Resource)
	return reconcile.Result{}, nil
}

// write writes a link, unless the claim or the Machine has changed so that it must not be.
func (r *Reconciler) write(ctx context.Context, request Request) error {
	machine, err := r.spare(ctx, request)
	if err != nil || machine == nil {
		return err
	}
	resource, err := scalable.Get(ctx, r.clusters, request.Resource)
	if err != nil {
		return err
	}
	if paused, err := r.isPaused(ctx, resource); err != nil || paused {
		return err // the event of its end triggers the next plan
	}
	claim, err := r.needy(ctx, request.Claim, machine)
	if err != nil || claim == nil {
		return err
	}
	linked, err := lifecycle.Link(ctx, r.clusters.Management.GetClient(), machine, claim, scalable.LinkLabels(resource))
	if err != nil {
		// The cache may lack the write of another writer, and the API server may have applied a write that it
		// answered with an error.
		r.readAgain(ctx, request.Resource, machine)
		if requeue.IsChanged(err) {
			return nil // the plan is outdated
		}
		return err
	}
	r.recent.add(request.Resource, linked)
	r.recorder.Publish(machineLinked(claim, machine))
	log.FromContext(ctx).Info("linked Machine to NodeClaim", "Machine", client.ObjectKeyFromObject(machine), "NodeClaim", claim.Name)
	return nil
}

// isPaused reports whether the Cluster or the resource is paused since the link was planned, or the Cluster no longer
// exists.
func (r *Reconciler) isPaused(ctx context.Context, resource *scalable.Resource) (bool, error) {
	cluster, err := r.clusters.Cached(ctx)
	if err != nil || cluster == nil {
		return true, err
	}
	return lo.FromPtr(cluster.Spec.Paused) || resource != nil && resource.Paused(), nil
}

// spare returns the latest known version of a Machine; nil if it no longer exists, is linked or is leaving.
func (r *Reconciler) spare(ctx context.Context, request Request) (*clusterv1.Machine, error) {
	machine := &clusterv1.Machine{}
	key := types.NamespacedName{Namespace: r.clusters.Cluster.Namespace, Name: request.Machine.Name}
	if err := r.clusters.Management.GetClient().Get(ctx, key, machine); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("getting Machine %s: %w", key, err)
	}
	if known := r.recent.get(request.Resource, request.Machine.UID); known != nil && (machine.UID != known.UID || IsLater(known, machine)) {
		machine = known
	}
	if machine.UID != request.Machine.UID || lifecycle.ClaimUID(machine) != "" || lifecycle.IsLeaving(machine) {
		return nil, nil
	}
	return machine, nil
}

// needy returns a claim as the API server has it; nil if it no longer exists, is being deleted, or has a Node that
// is not the Machine's. CloudProvider.Delete relies on the last: a registered claim is linked to no second Machine.
// This read happens once in the life of a claim.
func (r *Reconciler) needy(ctx context.Context, of Object, machine *clusterv1.Machine) (*karpv1.NodeClaim, error) {
	claim := &karpv1.NodeClaim{}
	if err := r.clusters.Workload.GetAPIReader().Get(ctx, types.NamespacedName{Name: of.Name}, claim); err != nil {
		return nil, client.IgnoreNotFound(fmt.Errorf("getting NodeClaim %s: %w", of.Name, err))
	}
	hasOther := nodeclaims.IsRegistered(claim) && claim.Status.ProviderID != machine.Spec.ProviderID
	if claim.UID != of.UID || !claim.DeletionTimestamp.IsZero() || hasOther {
		return nil, nil
	}
	return claim, nil
}

// readAgain remembers a Machine as the API server has it, or that it must be read before the next decision.
func (r *Reconciler) readAgain(ctx context.Context, resource string, machine *clusterv1.Machine) {
	live, err := ReadMachine(ctx, r.clusters.Management.GetAPIReader(), machine)
	switch {
	case err != nil:
		r.recent.doubt(resource, machine)
	case live != nil:
		r.recent.add(resource, live)
	}
}

// Newest returns the Machines of a resource, each in the latest version that this process knows, given those of
// the cache.
func (r *Reconciler) Newest(ctx context.Context, resource string, cached []clusterv1.Machine) ([]clusterv1.Machine, error) {
	live := r.clusters.Management.GetAPIReader()
	if err := r.recent.fill(ctx, live, r.clusters.Cluster); err != nil {
		return nil, err
	}
	return r.recent.newest(ctx, live, resource, cached)
}

// Remember stores a version of a Machine that the cache may lack.
func (r *Reconciler) Remember(resource string, machine *clusterv1.Machine) {
	r.recent.add(resource, machine)
}
