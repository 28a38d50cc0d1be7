// SPDX-License-Identifier: Apache-2.0

package pendingpods

import (
	"context"
	"fmt"
	"time"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"
	podutils "sigs.k8s.io/karpenter/pkg/utils/pod"

	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
)

const (
	// repeatAfter is when a Pod that still waits is looked at again. API servers keep an event for an hour by default.
	repeatAfter = 15 * time.Minute
	// unknownAfter is when a Pod is looked at again whose NodePool core has not examined.
	unknownAfter = time.Minute
)

// Reconciler reports why NodePools launch nothing for Pods.
type Reconciler struct {
	workload client.Client
	recorder events.Recorder
}

// NewReconciler returns the reconciler of the workload cluster.
func NewReconciler(workload client.Client, recorder events.Recorder) *Reconciler {
	return &Reconciler{workload: workload, recorder: recorder}
}

// Register adds the reconciler to a manager.
func (r *Reconciler) Register(_ context.Context, mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("capi.pendingpods").
		For(&corev1.Pod{}, builder.WithPredicates(beginsToWait())).
		Watches(&karpv1.NodePool{}, handler.EnqueueRequestsFromMapFunc(r.waiting), builder.WithPredicates(otherProblem())).
		Complete(r)
}

// beginsToWait passes the events of Pods for which kube-scheduler has found no Node, but not those of Pods that have waited
// before.
func beginsToWait() predicate.Predicate {
	waits := func(object client.Object) bool {
		pod, isPod := object.(*corev1.Pod)
		return isPod && isWaiting(pod)
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return waits(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return waits(e.ObjectNew) && !waits(e.ObjectOld) },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// otherProblem passes the updates of a NodePool that gets another reason for not being ready. All Pods are looked at after a start.
func otherProblem() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, isPool := e.ObjectOld.(*karpv1.NodePool)
			after, isStill := e.ObjectNew.(*karpv1.NodePool)
			if !isPool || !isStill {
				return false
			}
			problem := problemOf(after)
			return problem.reason != "" && problem.reason != problemOf(before).reason
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// waiting returns the Pods that wait. Few Pods have no Node, and the cache has an index of them (karpenter:
// pkg/operator/operator.go).
func (r *Reconciler) waiting(ctx context.Context, pool client.Object) []reconcile.Request {
	pods := &corev1.PodList{}
	if err := r.workload.List(ctx, pods, client.MatchingFields{"spec.nodeName": ""}, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "listing the Pods that wait", "NodePool", pool.GetName())
		return nil
	}
	return lo.FilterMap(pods.Items, func(pod corev1.Pod, _ int) (reconcile.Request, bool) {
		return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&pod)}, isWaiting(&pod)
	})
}

// isWaiting reports whether Karpenter should create a Node for a Pod.
func isWaiting(pod *corev1.Pod) bool {
	return podutils.IsProvisionable(pod) && !podutils.IsTerminating(pod)
}

// Reconcile reports why the NodePools that a Pod could use launch nothing.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	pod := &corev1.Pod{}
	if err := r.workload.Get(ctx, request.NamespacedName, pod); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(fmt.Errorf("getting Pod %s: %w", request, err))
	}
	if !isWaiting(pod) {
		return reconcile.Result{}, nil
	}
	pools := &karpv1.NodePoolList{}
	if err := r.workload.List(ctx, pools, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing NodePools: %w", err)
	}
	problems, unknown := problemsOf(pod, pools.Items)
	if len(problems) > 0 {
		r.recorder.Publish(notReady(pod, problems))
	}
	// No event shows that the Pod still waits.
	return reconcile.Result{RequeueAfter: requeue.Soonest(lo.Ternary(unknown, unknownAfter, 0), lo.Ternary(len(problems) > 0, repeatAfter, 0))}, nil
}
