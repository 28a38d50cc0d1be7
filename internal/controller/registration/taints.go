// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/precondition"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
)

// TaintReconciler restores the taints with which Karpenter has registered a Node.
//
// Cluster API's controller of MachinePools patches Nodes from its cache. It replaces the
// list of taints, without the resourceVersion as precondition (core/reconcilers/
// machinepool/machinepool_controller_noderef.go, patchNodes). If Karpenter registers a
// Node at the same time, that patch restores the earlier taints. Karpenter registers a Node
// only once, so it would never initialize the Node, and the NodeClaim would stay forever.
type TaintReconciler struct {
	workload client.Client
}

// NewTaintReconciler returns the reconciler for the workload cluster.
func NewTaintReconciler(workload client.Client) *TaintReconciler {
	return &TaintReconciler{workload: workload}
}

// Register adds the reconciler to a manager.
func (r *TaintReconciler) Register(_ context.Context, mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("capi.registration").
		For(&corev1.Node{}, builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool { return undone(o.(*corev1.Node)) }))).
		Complete(reconcile.AsReconciler(r.workload, r))
}

// +kubebuilder:rbac:roleName=workload-role,groups="",resources=nodes,verbs=list;watch;patch

// Reconcile works on one Node.
func (r *TaintReconciler) Reconcile(ctx context.Context, node *corev1.Node) (reconcile.Result, error) {
	if !undone(node) {
		return reconcile.Result{}, nil
	}
	claims := &karpv1.NodeClaimList{}
	if err := r.workload.List(ctx, claims, client.MatchingFields{clients.NodeClaimProviderIDField: node.Spec.ProviderID}); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing the NodeClaim of Node %s: %w", node.Name, err)
	}
	if len(claims.Items) != 1 {
		return reconcile.Result{}, nil // it is being deleted
	}
	registered := node.DeepCopy()
	registered.Spec.Taints = taintsOf(node, &claims.Items[0])
	if equality.Semantic.DeepEqual(node.Spec.Taints, registered.Spec.Taints) {
		return reconcile.Result{}, nil
	}
	if err := precondition.Write(ctx, r.workload, node, registered, "patching the taints of"); err != nil {
		return requeue.AfterConflict(reconcile.Result{}, err)
	}
	log.FromContext(ctx).Info("restored the taints with which the Node was registered", "Node", node.Name)
	return reconcile.Result{}, nil
}

// undone reports whether a registered Node has the taint of an unregistered one. Karpenter
// adds the label and removes the taint in one patch.
func undone(node *corev1.Node) bool {
	return node.DeletionTimestamp.IsZero() && node.Labels[karpv1.NodeRegisteredLabelKey] == "true" &&
		lo.ContainsBy(node.Spec.Taints, isUnregistered)
}

func isUnregistered(taint corev1.Taint) bool {
	return taint.MatchTaint(&karpv1.UnregisteredNoExecuteTaint)
}

// taintsOf returns the taints that a Node should have, like core's registration (karpenter:
// pkg/controllers/nodeclaim/lifecycle/registration.go, syncNode).
func taintsOf(node *corev1.Node, claim *karpv1.NodeClaim) []corev1.Taint {
	taints := lo.Reject(node.Spec.Taints, func(taint corev1.Taint, _ int) bool { return isUnregistered(taint) })
	if node.Labels[karpv1.NodeDoNotSyncTaintsLabelKey] == "true" {
		return taints
	}
	taints = scheduling.Taints(taints).Merge(claim.Spec.Taints)
	if !claim.StatusConditions().Get(karpv1.ConditionTypeInitialized).IsTrue() {
		taints = scheduling.Taints(taints).Merge(claim.Spec.StartupTaints)
	}
	return taints
}
