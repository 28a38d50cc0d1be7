// SPDX-License-Identifier: Apache-2.0

package clusterdeletion

import (
	"context"
	"errors"
	"fmt"

	"github.com/samber/lo"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/enqueue"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
)

// writers is how many Machines are written at the same time. Each write waits for the webhooks of Cluster API, which is busy
// deleting the Cluster, and the operator may run on one of the Machines that it deletes.
const writers = 10

// Reconciler removes hooks when the served Cluster is being deleted.
type Reconciler struct {
	clusters *clients.Clusters
	// node is the name of the Node on which the operator runs; empty if that is unknown.
	node string
}

// NewReconciler returns the reconciler for the served Cluster. node is the name of the Node on which the
// operator runs; empty if that is unknown.
func NewReconciler(clusters *clients.Clusters, node string) *Reconciler {
	return &Reconciler{clusters: clusters, node: node}
}

// Register adds the reconciler to a manager.
func (r *Reconciler) Register(_ context.Context, mgr manager.Manager) error {
	management := r.clusters.Management.GetCache()
	served := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: r.clusters.Cluster}}
	})
	return ctrl.NewControllerManagedBy(mgr).Named("capi.clusterdeletion").
		WatchesRawSource(source.Kind[client.Object](management, &clusterv1.Cluster{}, served, enqueue.ClusterChanged())).
		WatchesRawSource(source.Kind[client.Object](management, &clusterv1.Machine{}, served, hooksChanged())).
		Complete(r)
}

// +kubebuilder:rbac:roleName=management-role,groups=cluster.x-k8s.io,resources=clusters,verbs=get;list;watch
// +kubebuilder:rbac:roleName=management-role,groups=cluster.x-k8s.io,resources=machines,verbs=get;list;watch;patch

// Reconcile removes the hooks that can be removed now. The event of the last one triggers the reconcile
// that removes those of the Machine on which the operator runs.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	ends, err := r.ends(ctx)
	if err != nil || !ends {
		return reconcile.Result{}, err
	}
	machines := &clusterv1.MachineList{}
	if err := r.clusters.Management.GetClient().List(ctx, machines, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing the Machines of Cluster %s: %w", r.clusters.Cluster, err)
	}
	own := lo.Filter(machines.Items, func(machine clusterv1.Machine, _ int) bool {
		return machine.Spec.ClusterName == r.clusters.Cluster.Name
	})
	held := removable(own, r.node)
	errs := make([]error, len(held))
	workqueue.ParallelizeUntil(ctx, writers, len(held), func(i int) {
		if errs[i] = lifecycle.RemoveHooks(ctx, r.clusters.Management.GetClient(), held[i]); errs[i] == nil {
			log.FromContext(ctx).Info("removed the hooks of Machine, because its Cluster is being deleted", "Machine", client.ObjectKeyFromObject(held[i]))
		}
	})
	return requeue.AfterConflict(reconcile.Result{}, errors.Join(errs...))
}

// ends reports whether the Cluster is being deleted or does not exist, and is not paused. The cache can
// lack a Cluster whose Machines it has.
func (r *Reconciler) ends(ctx context.Context) (bool, error) {
	cluster, err := r.clusters.Cached(ctx)
	if err == nil && cluster == nil {
		cluster, err = r.clusters.Live(ctx)
	}
	if err != nil || cluster == nil {
		return err == nil, err
	}
	return !cluster.DeletionTimestamp.IsZero() && !lo.FromPtr(cluster.Spec.Paused), nil
}

// removable returns the Machines whose hooks are removed now: all that have hooks, or those of the given
// Node if no other has.
func removable(machines []clusterv1.Machine, node string) []*clusterv1.Machine {
	var others, own []*clusterv1.Machine
	for i := range machines {
		switch machine := &machines[i]; {
		case !lifecycle.HasHooks(machine):
		case node != "" && machine.Status.NodeRef.Name == node:
			own = append(own, machine)
		default:
			others = append(others, machine)
		}
	}
	return lo.Ternary(len(others) > 0, others, own)
}

// hooksChanged passes events after which a Machine has hooks, or has them no longer.
func hooksChanged() predicate.Predicate {
	has := func(object client.Object) bool {
		machine, is := object.(*clusterv1.Machine)
		return is && lifecycle.HasHooks(machine)
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return has(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return has(e.ObjectOld) != has(e.ObjectNew) },
		DeleteFunc: func(e event.DeleteEvent) bool { return has(e.Object) },
	}
}
