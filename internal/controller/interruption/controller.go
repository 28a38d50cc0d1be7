// SPDX-License-Identifier: Apache-2.0

package interruption

import (
	"context"
	"errors"
	"fmt"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/enqueue"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
	"github.com/karpenter-capi/karpenter-capi/internal/signals"
)

// Reconciler deletes the NodeClaims of Nodes whose instance ends.
type Reconciler struct {
	clusters *clients.Clusters
	catalog  *catalog.Catalog
	signals  signals.Signals
	recorder events.Recorder
	clock    clock.PassiveClock
}

// NewReconciler returns the reconciler for the signals of the operator's settings.
func NewReconciler(clusters *clients.Clusters, catalog *catalog.Catalog, signals signals.Signals, recorder events.Recorder, clock clock.PassiveClock) *Reconciler {
	return &Reconciler{clusters: clusters, catalog: catalog, signals: signals, recorder: recorder, clock: clock}
}

// Register adds the reconciler to a manager.
func (r *Reconciler) Register(_ context.Context, mgr manager.Manager) error {
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{{}} })
	return ctrl.NewControllerManagedBy(mgr).Named("capi.interruption").
		Watches(&corev1.Node{}, all, builder.WithPredicates(r.announced())).
		// The notice can be as short as 30 seconds.
		WithOptions(controller.Options{RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](enqueue.MinRetry, enqueue.MaxRetry)}).
		Complete(r)
}

// announced passes the events from which on a Node must be replaced: a handler sets a signal, or Karpenter
// registers a Node that has one. When the operator starts, it also passes all Nodes that must be replaced.
func (r *Reconciler) announced() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return r.ends(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return r.ends(e.ObjectNew) && !r.ends(e.ObjectOld) },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// ends reports whether an object is a Node of this operator, registered, and with a signal.
func (r *Reconciler) ends(object client.Object) bool {
	node, is := object.(*corev1.Node)
	return is && ours(node) && r.signals.Of(node) != ""
}

// ours reports whether Karpenter has registered a Node for a NodeClaim of this operator.
func ours(node *corev1.Node) bool {
	_, ofTemplate := node.Labels[clients.NodeTemplateLabel]
	return ofTemplate && node.Labels[karpv1.NodeRegisteredLabelKey] == "true"
}

// +kubebuilder:rbac:roleName=workload-role,groups="",resources=nodes,verbs=list;watch
// +kubebuilder:rbac:roleName=workload-role,groups=karpenter.sh,resources=nodeclaims,verbs=get;list;watch;delete
// +kubebuilder:rbac:roleName=workload-role,groups=karpenter.cluster.x-k8s.io,resources=karpentermachinetemplates,verbs=list;watch
// +kubebuilder:rbac:roleName=workload-role,groups=karpenter.cluster.x-k8s.io,resources=karpentermachinetemplates/status,verbs=patch

// Reconcile handles all Nodes that have a signal. A template or NodeClaim whose write fails does not stop
// the others.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	return requeue.AfterConflict(reconcile.Result{}, r.reconcile(ctx))
}

func (r *Reconciler) reconcile(ctx context.Context) error {
	found, err := r.interrupted(ctx)
	errs := []error{err}
	for template, ofTemplate := range lo.GroupBy(found, interruptedNode.template) {
		if err := r.mark(ctx, template, ofTemplate); err != nil {
			errs = append(errs, err)
			continue
		}
		// Karpenter collects the Pods of these Nodes for at least batchIdleDuration, one second by default,
		// before it chooses offerings. The cache has the marks by then.
		for i := range ofTemplate {
			errs = append(errs, r.delete(ctx, &ofTemplate[i]))
		}
	}
	return errors.Join(errs...)
}

// interruptedNode is a Node with a signal, and its claim.
type interruptedNode struct {
	node   *corev1.Node
	claim  *karpv1.NodeClaim
	signal string
}

func (n interruptedNode) template() string { return n.claim.Spec.NodeClassRef.Name }

func (n interruptedNode) reason() string {
	return fmt.Sprintf("Node %s has the %s", n.node.Name, n.signal)
}

// interrupted returns the Nodes that have a signal, and whose claim is not being deleted. It reports the
// claims that have one provider ID.
func (r *Reconciler) interrupted(ctx context.Context) ([]interruptedNode, error) {
	workload := r.clusters.Workload.GetClient()
	nodes := &corev1.NodeList{}
	if err := workload.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Nodes: %w", err)
	}
	var found []interruptedNode
	var errs []error
	for i := range nodes.Items {
		node := &nodes.Items[i]
		if !r.ends(node) {
			continue
		}
		claim, sharing, err := r.claimOf(ctx, node)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if claim != nil && !claim.DeletionTimestamp.IsZero() {
			continue
		}
		if len(sharing) > 1 {
			r.recorder.Publish(providerIDShared(node, claim, sharing)...)
		}
		if claim != nil {
			found = append(found, interruptedNode{node: node.DeepCopy(), claim: claim, signal: r.signals.Of(node)})
		}
	}
	return found, errors.Join(errs...)
}

// delete deletes the claim of a Node, and never another one of the same name.
func (r *Reconciler) delete(ctx context.Context, ends *interruptedNode) error {
	r.recorder.Publish(nodeInterrupted(ends), claimInterrupted(ends))
	return nodeclaims.Delete(ctx, r.clusters.Workload.GetClient(), ends.claim, ends.reason())
}
