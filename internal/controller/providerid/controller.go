// SPDX-License-Identifier: Apache-2.0

package providerid

import (
	"context"
	"fmt"

	"k8s.io/client-go/util/workqueue"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/controller/enqueue"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
)

// concurrency is the number of claims that are reconciled at once. A reconcile is at most one write.
const concurrency = 20

// Reconciler gives NodeClaims the provider IDs of their Machines.
type Reconciler struct {
	clusters *operator.Clusters
}

// NewReconciler returns the reconciler for the served Cluster.
func NewReconciler(clusters *operator.Clusters) *Reconciler { return &Reconciler{clusters: clusters} }

// Register adds the reconciler to a manager.
func (r *Reconciler) Register(_ context.Context, mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("capi.providerid").
		Watches(&karpv1.NodeClaim{}, r.ofClaim()).
		WatchesRawSource(source.Kind[client.Object](r.clusters.Management.GetCache(), &clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(ofMachine), machineChanged())).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: concurrency,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](enqueue.MinRetry, enqueue.MaxRetry),
		}).
		Complete(r)
}

// +kubebuilder:rbac:roleName=workload-role,groups=karpenter.sh,resources=nodeclaims,verbs=get;list;watch
// +kubebuilder:rbac:roleName=workload-role,groups=karpenter.sh,resources=nodeclaims/status,verbs=patch
// +kubebuilder:rbac:roleName=management-role,groups=cluster.x-k8s.io,resources=machines,verbs=get;list;watch

// Reconcile gives the claim of the given name the provider ID of its Machine, if the claim is
// launched and not being deleted, and has a Machine with a provider ID.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	claim := &karpv1.NodeClaim{}
	if err := r.clusters.Workload.GetClient().Get(ctx, request.NamespacedName, claim); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(fmt.Errorf("getting NodeClaim %s: %w", request.Name, err))
	}
	// If core has not stored the launch yet, its own write would overwrite the ID. The Machine of a
	// claim that is being deleted is about to be deleted or unlinked, and no second claim may have
	// the same ID.
	if !launched(claim) || !claim.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	machines := &clusterv1.MachineList{}
	if err := r.clusters.Management.GetClient().List(ctx, machines,
		client.MatchingFields{operator.MachineClaimField: string(claim.UID)}, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing the Machines of NodeClaim %s: %w", claim.Name, err)
	}
	served, found := planner.ServedBy(claim.Status.ProviderID, machinesOf(machines))
	if !found || served.ProviderID == "" || served.ProviderID == claim.Status.ProviderID {
		return reconcile.Result{}, nil
	}
	return requeue.AfterConflict(reconcile.Result{}, r.setProviderID(ctx, claim, served.ProviderID))
}

// machinesOf returns what the planner needs to know of Machines that are linked to a claim.
func machinesOf(list *clusterv1.MachineList) []planner.Machine {
	var machines []planner.Machine
	for i := range list.Items {
		machine := &list.Items[i]
		machines = append(machines, planner.Machine{
			Name: machine.Name, Created: machine.CreationTimestamp.Time, ProviderID: machine.Spec.ProviderID, Leaving: lifecycle.IsLeaving(machine),
		})
	}
	return machines
}
