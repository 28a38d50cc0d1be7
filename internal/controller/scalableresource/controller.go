// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"errors"
	"time"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/enqueue"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/link"
	"github.com/karpenter-capi/karpenter-capi/internal/pattern"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
)

// Reconciler reconciles the scalable resources of the served Cluster, with their NodeClaims and Machines.
type Reconciler struct {
	clusters *clients.Clusters
	catalog  *catalog.Catalog
	links    *link.Reconciler
	recorder events.Recorder
	clock    clock.PassiveClock
	podsOf   func(claim string) []types.NamespacedName
	spacing  *enqueue.Spacing
	memory   memory
}

// NewReconciler returns the reconciler for the served Cluster, which has links written. podsOf returns the Pods that
// Karpenter has decided to schedule to the Node of a claim.
func NewReconciler(clusters *clients.Clusters, catalog *catalog.Catalog, links *link.Reconciler, recorder events.Recorder, clock clock.PassiveClock, podsOf func(claim string) []types.NamespacedName) *Reconciler {
	r := &Reconciler{
		clusters: clusters, catalog: catalog, links: links, recorder: recorder, clock: clock, podsOf: podsOf,
		spacing: enqueue.NewSpacing(clock),
	}
	links.OnEnd(r.spacing.Enqueue)
	return r
}

// Register adds the reconciler to a manager.
func (r *Reconciler) Register(_ context.Context, mgr manager.Manager) error {
	return enqueue.Resources(ctrl.NewControllerManagedBy(mgr).Named("capi.scalableresource"), r.clusters, r.spacing).
		// The durations of a template, and its deletion, decide for how long its resources and their spare Machines
		// stay, and its version which resource waiting claims get. A failure is recorded on the template first, and
		// the claim is handled when the cache has that.
		Watches(&v1alpha1.KarpenterMachineTemplate{}, enqueue.ResourcesOfTemplate(r.clusters),
			builder.WithPredicates(predicate.Or(enqueue.TemplateChanged(), enqueue.UnavailableChanged()))).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.resourcesOfNode), builder.WithPredicates(enqueue.Deleted())).
		WatchesRawSource(source.Kind[client.Object](r.clusters.Management.GetCache(), &clusterv1.MachineDeployment{}, enqueue.ResourcesOfFollowers(r.clusters), pattern.Changed())).
		WatchesRawSource(r.spacing.Source()).
		Complete(r)
}

// +kubebuilder:rbac:roleName=workload-role,groups="",resources=nodes,verbs=list;watch
// +kubebuilder:rbac:roleName=workload-role,groups=karpenter.sh,resources=nodeclaims,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:roleName=workload-role,groups=karpenter.sh,resources=nodeclaims/status,verbs=patch
// +kubebuilder:rbac:roleName=workload-role,groups=karpenter.cluster.x-k8s.io,resources=karpentermachinetemplates,verbs=list;watch
// +kubebuilder:rbac:roleName=workload-role,groups=karpenter.cluster.x-k8s.io,resources=karpentermachinetemplates/status,verbs=patch
// +kubebuilder:rbac:roleName=management-role,groups=cluster.x-k8s.io,resources=clusters,verbs=get;list;watch
// +kubebuilder:rbac:roleName=management-role,groups=cluster.x-k8s.io,resources=machinedeployments;machinepools,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:roleName=management-role,groups=cluster.x-k8s.io,resources=machinesets,verbs=get;list;watch;patch
// +kubebuilder:rbac:roleName=management-role,groups=cluster.x-k8s.io,resources=machines,verbs=get;list;watch;patch;delete

// Reconcile reconciles the scalable resource of the given name.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	return requeue.AfterConflict(r.reconcile(ctx, request.Name))
}

func (r *Reconciler) reconcile(ctx context.Context, name string) (reconcile.Result, error) {
	r.spacing.Begin(name)
	if adopted, err := r.adopt(ctx, name); err != nil || adopted {
		return reconcile.Result{}, err
	}
	// This comes before the caches are read. A link that is no longer open is then in the caches, or among the newest
	// Machines.
	open := lo.SliceToMap(r.links.Open(name), func(l link.Request) (claim, machine types.UID) { return l.Claim.UID, l.Machine.UID })
	known := snapshot.Known{Machines: r.links.Newest, Open: open, ProgressedAt: r.memory.progressed(time.Time{})}
	read, err := snapshot.Read(ctx, r.clusters, r.catalog, name, r.clock.Now(), known)
	if err != nil {
		return reconcile.Result{}, err
	}
	if read == nil {
		r.spacing.SetSize(name, 0)
		return reconcile.Result{}, nil
	}
	r.memory.progressed(read.State.ProgressedAt)
	size := len(read.Claims) + len(read.Machines)
	r.spacing.SetSize(name, size)
	if read.Resource == nil && size == 0 {
		r.memory.forget(name)
		return reconcile.Result{}, nil
	}
	snap := &decided{Snapshot: read, Plan: planner.Decide(&read.State)}
	r.logReasons(ctx, snap)
	r.reportUnsettled(snap)
	if snap.State.Suspended && !snap.State.ClusterDeleting {
		again, lost := r.deleteLost(ctx, snap)
		return reconcile.Result{RequeueAfter: again}, errors.Join(lost, r.deleteSuspended(ctx, snap))
	}
	linkIn, links := r.startLinks(ctx, snap)
	again, claims := r.handleClaims(ctx, snap)
	if corrected, err := r.fixTimes(ctx, snap); err != nil || corrected {
		return reconcile.Result{}, errors.Join(links, claims, err)
	}
	removed := r.markAndUnlink(ctx, snap)
	waits, left := r.deleteMarked(ctx, snap)
	result, err := r.scale(ctx, snap)
	if err := errors.Join(links, claims, removed, left, err); err != nil {
		return reconcile.Result{}, err
	}
	result.RequeueAfter = requeue.Soonest(result.RequeueAfter, linkIn, again, waits, snap.Plan.Due.In)
	return result, nil
}

// handleClaims reports what the claims wait for, and ends those that get or have no Machine any more. It does
// nothing while a cluster cannot be reached: what the caches lack may exist. It returns the time until the next attempt.
func (r *Reconciler) handleClaims(ctx context.Context, snap *decided) (time.Duration, error) {
	if unreachable := r.clusters.Guard(ctx); unreachable != nil {
		return 0, unreachable
	}
	reset := r.resetProviderIDs(ctx, snap)
	silentIn, lost := r.deleteLost(ctx, snap)
	ended, told := r.deleteWithCluster(ctx, snap), r.reportStalls(ctx, snap)
	waitIn, waits := r.reportWaits(ctx, snap)
	return requeue.Soonest(silentIn, waitIn), errors.Join(reset, lost, ended, told, waits, r.handleFailures(ctx, snap))
}
