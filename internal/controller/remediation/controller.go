// SPDX-License-Identifier: Apache-2.0

// Package remediation deletes remediation requests that are no longer needed, because the machine was restarted, or its
// NodeClaim is being deleted. CloudProvider.Reboot creates them. Package internal/remediation describes both.
//
// A NodeClaim without a request costs nothing. While the Cluster is paused or was moved, requests stay, because
// clusterctl moves them with their Machines.
package remediation

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/enqueue"
	"github.com/karpenter-capi/karpenter-capi/internal/remediation"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
)

// inactiveAgain is the time until the next reconcile while the Cluster is inactive. Its end is no event of the NodeClaim.
const inactiveAgain = time.Minute

// Reconciler deletes remediation requests.
type Reconciler struct {
	clusters *clients.Clusters
}

// NewReconciler returns the reconciler for the served Cluster.
func NewReconciler(clusters *clients.Clusters) *Reconciler { return &Reconciler{clusters: clusters} }

// Register adds the reconciler to a manager.
func (r *Reconciler) Register(_ context.Context, mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("capi.remediation").
		For(&karpv1.NodeClaim{}, builder.WithPredicates(predicate.NewPredicateFuncs(hasEnded))).
		WithOptions(controller.Options{RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](enqueue.MinRetry, enqueue.MaxRetry)}).
		Complete(r)
}

// hasEnded reports whether an object is a NodeClaim with a remediation request that is no longer needed.
func hasEnded(object client.Object) bool {
	claim, is := object.(*karpv1.NodeClaim)
	return is && claim.Annotations[v1alpha1.RemediationAnnotation] != "" && !remediation.Needed(claim)
}

// +kubebuilder:rbac:roleName=workload-role,groups=karpenter.sh,resources=nodeclaims,verbs=list;watch;patch
// +kubebuilder:rbac:roleName=management-role,groups=cluster.x-k8s.io,resources=clusters,verbs=get;list;watch
// +kubebuilder:rbac:roleName=management-role,groups=infrastructure.cluster.x-k8s.io,resources=*,verbs=get;create;delete

// Reconcile deletes the remediation request of one NodeClaim.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	claim := &karpv1.NodeClaim{}
	if err := r.clusters.Workload.GetClient().Get(ctx, request.NamespacedName, claim); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(fmt.Errorf("getting NodeClaim %s: %w", request.Name, err))
	}
	if !hasEnded(claim) {
		return reconcile.Result{}, nil
	}
	if err := r.clusters.Guard(ctx); err != nil {
		return reconcile.Result{}, err
	}
	if inactive, err := r.clusters.Inactive(ctx); err != nil {
		return reconcile.Result{}, err
	} else if inactive {
		return reconcile.Result{RequeueAfter: inactiveAgain}, nil
	}
	return requeue.AfterConflict(reconcile.Result{}, remediation.End(ctx, r.clusters, claim))
}
