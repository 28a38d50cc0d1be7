// SPDX-License-Identifier: Apache-2.0

// Package nodeclaim links Machines to NodeClaims and propagates provider IDs.
//
// It works on all claims of one scalable resource at a time: which Machine
// serves which claim is decided from the order of their creation, see
// internal/link. A link is written on the Machine, with its resourceVersion as
// precondition, and nowhere else, so that no two writers can give one Machine to
// two claims. The provider ID follows whenever the Machine has it; should
// Karpenter core put the provisional ID back (its launch cache can, on a stale
// read), it is replaced again.
package nodeclaim

import (
	"context"
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karpenter-capi/karpenter-capi/internal/controller/enqueue"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// concurrency is the number of scalable resources that are worked on at once.
const concurrency = 10

// Reconciler links the claims of one scalable resource to its Machines.
type Reconciler struct {
	clusters *operator.Clusters
}

// NewReconciler returns the reconciler for the served Cluster.
func NewReconciler(clusters *operator.Clusters) *Reconciler {
	return &Reconciler{clusters: clusters}
}

// Register adds the reconciler to a manager.
func (r *Reconciler) Register(_ context.Context, mgr manager.Manager) error {
	return enqueue.Resources(ctrl.NewControllerManagedBy(mgr).Named("capi.nodeclaim"), r.clusters).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		Complete(r)
}

// +kubebuilder:rbac:groups=karpenter.sh,resources=nodeclaims,verbs=get;list;watch
// +kubebuilder:rbac:groups=karpenter.sh,resources=nodeclaims/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters;machinedeployments,verbs=get;list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines,verbs=get;list;watch;patch

// Reconcile works on the scalable resource of the given name. One claim's
// failure does not stop the others.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	observed, err := scalable.Observe(ctx, r.clusters, request.Name)
	if err != nil || observed == nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, errors.Join(r.link(ctx, observed), r.propagate(ctx, observed))
}
