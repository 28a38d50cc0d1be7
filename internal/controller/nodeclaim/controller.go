// SPDX-License-Identifier: Apache-2.0

package nodeclaim

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/enqueue"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
)

// Reconciler links the claims of one scalable resource to its Machines.
type Reconciler struct {
	clusters      *operator.Clusters
	catalog       *catalog.Catalog
	cloudProvider cloudprovider.CloudProvider
	recorder      events.Recorder
	clock         clock.PassiveClock
	podsOf        func(claim string) []types.NamespacedName
	spacing       *enqueue.Spacing

	// writer writes links; nil if each reconcile writes its own.
	writer *writer
	// recent has the Machines whose links may not be in the cache yet.
	recent recent
}

// NewReconciler returns the reconciler for the served Cluster. podsOf returns the Pods that
// Karpenter has decided to schedule to the Node of a claim.
func NewReconciler(clusters *operator.Clusters, catalog *catalog.Catalog, cloudProvider cloudprovider.CloudProvider, recorder events.Recorder, clock clock.PassiveClock, podsOf func(claim string) []types.NamespacedName) *Reconciler {
	return &Reconciler{clusters: clusters, catalog: catalog, cloudProvider: cloudProvider, recorder: recorder, clock: clock, podsOf: podsOf, spacing: enqueue.NewSpacing(clock)}
}

// Register adds the reconciler to a manager.
func (r *Reconciler) Register(_ context.Context, mgr manager.Manager) error {
	r.writer = newWriter()
	return enqueue.Resources(ctrl.NewControllerManagedBy(mgr).Named("capi.nodeclaim"), r.clusters, r.spacing).
		// A failure is recorded on the template first. The claim is handled when the cache has that.
		Watches(&v1alpha1.KarpenterMachineTemplate{}, enqueue.ResourcesOfTemplate(r.clusters), builder.WithPredicates(enqueue.UnavailableChanged())).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.resourcesOfNode), builder.WithPredicates(enqueue.Deleted())).
		WatchesRawSource(r.writer.source(r.spacing)).
		Complete(r)
}

// +kubebuilder:rbac:roleName=workload-role,groups="",resources=nodes,verbs=list;watch
// +kubebuilder:rbac:roleName=workload-role,groups=karpenter.sh,resources=nodeclaims,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:roleName=workload-role,groups=karpenter.sh,resources=nodeclaims/status,verbs=patch
// +kubebuilder:rbac:roleName=workload-role,groups=karpenter.cluster.x-k8s.io,resources=karpentermachinetemplates,verbs=list;watch
// +kubebuilder:rbac:roleName=workload-role,groups=karpenter.cluster.x-k8s.io,resources=karpentermachinetemplates/status,verbs=patch
// +kubebuilder:rbac:roleName=management-role,groups=cluster.x-k8s.io,resources=clusters;machinedeployments;machinesets,verbs=get;list;watch
// +kubebuilder:rbac:roleName=management-role,groups=cluster.x-k8s.io,resources=machines,verbs=get;list;watch;patch

// Reconcile reconciles the claims of the scalable resource of the given name. The failure of one
// claim does not stop the others.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	return requeue.AfterConflict(r.reconcile(ctx, request.Name))
}

func (r *Reconciler) reconcile(ctx context.Context, name string) (reconcile.Result, error) {
	r.spacing.Begin(name)
	busy := sets.New[types.UID]()
	if r.writer != nil {
		busy = r.writer.busy(name)
	}
	snap, err := snapshot.Load(ctx, r.clusters, r.catalog, name, r.clock.Now(), r.newest, busy)
	if err != nil || snap == nil {
		return reconcile.Result{}, err
	}
	r.spacing.SetSize(name, len(snap.Claims)+len(snap.Machines))
	if snap.Suspended && !snap.ClusterDeleting {
		again, err := r.deleteLost(ctx, snap)
		return reconcile.Result{RequeueAfter: again}, err
	}
	uncertain, err := r.startLinks(ctx, snap)
	snap.LeaveOut(uncertain)
	if unreachable := r.clusters.Guard(ctx); unreachable != nil {
		return reconcile.Result{}, errors.Join(err, unreachable) // what the caches lack may exist
	}
	err = errors.Join(err, r.resetProviderIDs(ctx, snap))
	silentIn, lost := r.deleteLost(ctx, snap)
	err = errors.Join(err, lost, r.deleteWithCluster(ctx, snap), r.reportStalls(ctx, snap))
	again, failed := r.handleFailures(ctx, snap)
	if err := errors.Join(err, failed); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: requeue.Soonest(again, silentIn, snap.DueIn())}, nil
}

// newest returns the Machines of a resource, each in the latest version that this process knows.
func (r *Reconciler) newest(ctx context.Context, resource string, cached []clusterv1.Machine) ([]clusterv1.Machine, error) {
	live := r.clusters.Management.GetAPIReader()
	if err := r.recent.fill(ctx, live, r.clusters.Cluster); err != nil {
		return nil, err
	}
	return r.recent.newest(ctx, live, resource, cached)
}
