// SPDX-License-Identifier: Apache-2.0

package providerid

import (
	"cmp"
	"context"
	"fmt"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
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
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/enqueue"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// concurrency is the number of claims that are reconciled at once. A reconcile is at most one write.
const concurrency = 20

// Reconciler gives NodeClaims the provider IDs of their Machines.
type Reconciler struct {
	clusters *clients.Clusters
	recorder events.Recorder
}

// NewReconciler returns the reconciler for the served Cluster.
func NewReconciler(clusters *clients.Clusters, recorder events.Recorder) *Reconciler {
	return &Reconciler{clusters: clusters, recorder: recorder}
}

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

// +kubebuilder:rbac:roleName=workload-role,groups="",resources=nodes,verbs=list;watch
// +kubebuilder:rbac:roleName=workload-role,groups=karpenter.sh,resources=nodeclaims,verbs=get;list;watch
// +kubebuilder:rbac:roleName=workload-role,groups=karpenter.sh,resources=nodeclaims/status,verbs=patch
// +kubebuilder:rbac:roleName=management-role,groups=cluster.x-k8s.io,resources=machines,verbs=get;list;watch

// Reconcile gives the claim of the given name the provider ID of its Machine, if the claim is
// launched and not being deleted, and has a Machine with a provider ID. A registered claim keeps the
// ID of its Node, whatever ID its Machine has.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	claim := &karpv1.NodeClaim{}
	if err := r.clusters.Workload.GetClient().Get(ctx, request.NamespacedName, claim); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(fmt.Errorf("getting NodeClaim %s: %w", request.Name, err))
	}
	// If core has not stored the launch yet, its own write would overwrite the ID. The Machine of a
	// claim that is being deleted is about to be deleted or unlinked, and no second claim may have
	// the same ID.
	if !nodeclaims.IsLaunched(claim) || !claim.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	machines := &clusterv1.MachineList{}
	if err := r.clusters.Management.GetClient().List(ctx, machines,
		client.MatchingFields{clients.MachineClaimField: string(claim.UID)}, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing the Machines of NodeClaim %s: %w", claim.Name, err)
	}
	own, err := scalable.OwnMachines(ctx, r.clusters, machines.Items)
	if err != nil {
		return reconcile.Result{}, err
	}
	served, found := planner.ServedBy(claim.Status.ProviderID, machinesOf(own))
	if !found || served.ProviderID == "" {
		return reconcile.Result{}, nil
	}
	if nodeclaims.IsRegistered(claim) && hasRealID(claim) {
		machine, _ := lo.Find(own, func(m clusterv1.Machine) bool { return m.Name == served.Name })
		if !lifecycle.HasIDOrNodeOf(&machine, claim) {
			return reconcile.Result{}, nil // it is the second Machine of a claim that ends
		}
		return requeue.AfterConflict(reconcile.Result{}, r.report(ctx, claim, &machine))
	}
	want, err := r.wanted(ctx, claim, served)
	if err != nil || want == claim.Status.ProviderID {
		return reconcile.Result{}, err
	}
	written, err := nodeclaims.SetProviderID(ctx, r.clusters.Workload.GetClient(), claim, served.Name, want)
	if written {
		r.recorder.Publish(providerIDSet(claim, served.Name))
	}
	return requeue.AfterConflict(reconcile.Result{}, err)
}

// wanted returns the provider ID of a claim whose ID is not final. It is that of its Machine, but a
// registered claim to which something has written its provisional ID again gets that of its Node.
func (r *Reconciler) wanted(ctx context.Context, claim *karpv1.NodeClaim, served planner.Machine) (string, error) {
	if !nodeclaims.IsRegistered(claim) {
		return served.ProviderID, nil
	}
	node := &corev1.Node{}
	if err := r.clusters.Workload.GetClient().Get(ctx, types.NamespacedName{Name: claim.Status.NodeName}, node); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("getting Node %s: %w", claim.Status.NodeName, err)
	}
	return cmp.Or(node.Spec.ProviderID, served.ProviderID), nil
}

// hasRealID reports whether a claim has the provider ID of a Machine.
func hasRealID(claim *karpv1.NodeClaim) bool {
	_, provisional := planner.ParseProvisionalID(claim.Status.ProviderID)
	return claim.Status.ProviderID != "" && !provisional
}

// machinesOf returns what the planner needs to know of Machines that are linked to a claim.
func machinesOf(linked []clusterv1.Machine) []planner.Machine {
	var machines []planner.Machine
	for i := range linked {
		machine := &linked[i]
		machines = append(machines, planner.Machine{
			Name: machine.Name, Created: machine.CreationTimestamp.Time, ProviderID: machine.Spec.ProviderID, Leaving: lifecycle.IsLeaving(machine),
		})
	}
	return machines
}
