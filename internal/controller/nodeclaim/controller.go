// SPDX-License-Identifier: Apache-2.0

// Package nodeclaim links Machines to NodeClaims and propagates provider IDs.
//
// It works on all claims of one scalable resource at a time: which Machine
// serves which claim is decided from the order of their creation, see
// internal/link. A link is written on the Machine, with its resourceVersion as
// precondition, and nowhere else, so that no two writers can give one Machine to
// two claims. A link that cannot be written stops nothing but the claim of that
// link. Linked Machines are known in the version that the API server returned
// until the cache has it, see recent.go, so that no claim is given a second one. The provider ID follows whenever the Machine has it; should
// Karpenter core put the provisional ID back (its launch cache can, on a stale
// read), it is replaced again.
//
// A claim whose machine could not be had is deleted, so that Karpenter makes
// another for the same Pods, with another offering; see failure.go. A claim whose Machine
// Cluster API does not create or act on waits; see halt.go.
package nodeclaim

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
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

	// recent has the Machines whose links may not be in the cache yet.
	recent recent
}

// NewReconciler returns the reconciler for the served Cluster. podsOf returns the
// Pods that Karpenter has decided to put on a claim's node.
func NewReconciler(clusters *operator.Clusters, catalog *catalog.Catalog, cloudProvider cloudprovider.CloudProvider, recorder events.Recorder, clock clock.PassiveClock, podsOf func(claim string) []types.NamespacedName) *Reconciler {
	return &Reconciler{clusters: clusters, catalog: catalog, cloudProvider: cloudProvider, recorder: recorder, clock: clock, podsOf: podsOf}
}

// Register adds the reconciler to a manager.
func (r *Reconciler) Register(_ context.Context, mgr manager.Manager) error {
	return enqueue.Resources(ctrl.NewControllerManagedBy(mgr).Named("capi.nodeclaim"), r.clusters).
		// A failure is told on the template first, and handled once that is seen here.
		Watches(&v1alpha1.KarpenterMachineTemplate{}, enqueue.ResourcesOfTemplate(r.clusters), builder.WithPredicates(enqueue.UnavailableChanged())).
		Complete(r)
}

// +kubebuilder:rbac:groups=karpenter.sh,resources=nodeclaims,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=karpenter.sh,resources=nodeclaims/status,verbs=patch
// +kubebuilder:rbac:groups=karpenter.cluster.x-k8s.io,resources=karpentermachinetemplates,verbs=get;list;watch
// +kubebuilder:rbac:groups=karpenter.cluster.x-k8s.io,resources=karpentermachinetemplates/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters;machinedeployments;machinesets,verbs=get;list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines,verbs=get;list;watch;patch

// Reconcile works on the scalable resource of the given name. One claim's
// failure does not stop the others.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	snap, err := snapshot.Load(ctx, r.clusters, r.catalog, request.Name, r.clock.Now(), r.newest)
	if err != nil || snap == nil {
		return reconcile.Result{}, err
	}
	if snap.Suspended && !snap.ClusterDeleting {
		return reconcile.Result{}, r.deleteLost(ctx, snap)
	}
	uncertain, err := r.link(ctx, snap)
	snap.Claims = slices.DeleteFunc(snap.Claims, func(claim karpv1.NodeClaim) bool { return uncertain.Has(claim.UID) })
	err = errors.Join(err, r.propagate(ctx, snap), r.deleteLost(ctx, snap), r.deleteWithCluster(ctx, snap), r.reportStalls(ctx, snap))
	again, failed := r.handleFailures(ctx, snap)
	if err := errors.Join(err, failed); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: requeue.Soonest(again, snap.DueIn())}, nil
}

// newest returns the Machines of a resource in the latest version that is known here.
func (r *Reconciler) newest(ctx context.Context, resource string, cached []clusterv1.Machine) ([]clusterv1.Machine, error) {
	live := r.clusters.Management.GetAPIReader()
	if err := r.recent.fill(ctx, live, r.clusters.Cluster); err != nil {
		return nil, err
	}
	return r.recent.newest(ctx, live, resource, cached)
}
