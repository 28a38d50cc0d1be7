// SPDX-License-Identifier: Apache-2.0

// Package podevents records on a NodeClaim when a Pod last came to its Node or left it.
// Karpenter counts consolidateAfter from that time. The package replaces Karpenter core's
// controller of the same name, and calls it.
//
// Core's controller treats every Pod that it sees as such an event. When it starts, it sets
// the time on all claims to now, so that the condition Consolidatable is removed and added
// again: that is three writes for each claim, and no Node is consolidated for
// consolidateAfter. This controller skips a Pod whose last event is already recorded. When
// it starts, it records events that occurred while the operator did not run.
package podevents

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/nodeclaim/podevents"
	nodeutils "sigs.k8s.io/karpenter/pkg/utils/node"
	podutils "sigs.k8s.io/karpenter/pkg/utils/pod"
)

// Controller records Pod events on NodeClaims.
type Controller struct {
	*podevents.Controller
	workload client.Client
}

// changes are the events that can have a new last event of a Pod.
var changes = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return !lastEvent(e.ObjectOld.(*corev1.Pod)).Equal(lastEvent(e.ObjectNew.(*corev1.Pod)))
	},
	// A Pod is terminating or has ended before it is deleted.
	DeleteFunc: func(event.DeleteEvent) bool { return false },
}

// NewController returns the controller.
func NewController(clock clock.Clock, workload client.Client, cloudProvider cloudprovider.CloudProvider) *Controller {
	return &Controller{Controller: podevents.NewController(clock, workload, cloudProvider), workload: workload}
}

// Register adds the controller to a manager.
func (c *Controller) Register(_ context.Context, mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named(c.Name()).
		For(&corev1.Pod{}, builder.WithPredicates(changes)).
		Complete(reconcile.AsReconciler(c.workload, c))
}

// Reconcile records the Pod's last event, unless it is already recorded.
func (c *Controller) Reconcile(ctx context.Context, pod *corev1.Pod) (reconcile.Result, error) {
	noted, err := c.noted(ctx, pod)
	if err != nil || !lastEvent(pod).After(noted) {
		return reconcile.Result{}, err
	}
	return c.Controller.Reconcile(ctx, pod)
}

// noted returns the time that is recorded on the NodeClaim of the Pod's Node; the zero time
// if the Node or the NodeClaim does not exist, which core's controller handles.
func (c *Controller) noted(ctx context.Context, pod *corev1.Pod) (time.Time, error) {
	if pod.Spec.NodeName == "" {
		return time.Time{}, nil
	}
	node := &corev1.Node{}
	if err := c.workload.Get(ctx, types.NamespacedName{Name: pod.Spec.NodeName}, node); err != nil {
		return time.Time{}, client.IgnoreNotFound(fmt.Errorf("getting Node %s: %w", pod.Spec.NodeName, err))
	}
	claim, err := nodeutils.NodeClaimForNode(ctx, c.workload, node)
	if err != nil {
		err = nodeutils.IgnoreDuplicateNodeClaimError(nodeutils.IgnoreNodeClaimNotFoundError(err))
		return time.Time{}, err
	}
	return claim.Status.LastPodEventTime.Time, nil
}

// lastEvent returns when the Pod was bound, ended, or began to terminate, whichever is last,
// in whole seconds; the zero time if it is not bound.
func lastEvent(pod *corev1.Pod) time.Time {
	var last time.Time
	note := func(at time.Time) {
		if at = at.Truncate(time.Second); at.After(last) {
			last = at
		}
	}
	if pod.Spec.NodeName == "" {
		return last
	}
	ended := podutils.IsTerminal(pod)
	for _, condition := range pod.Status.Conditions {
		bound := condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionTrue
		if bound || ended {
			note(condition.LastTransitionTime.Time)
		}
	}
	if ended {
		// No condition changes at the end of a Pod that was never ready.
		for _, container := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			if terminated := container.State.Terminated; terminated != nil {
				note(terminated.FinishedAt.Time)
			}
		}
	}
	if pod.DeletionTimestamp != nil {
		grace := time.Duration(0)
		if pod.DeletionGracePeriodSeconds != nil {
			grace = time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
		}
		note(pod.DeletionTimestamp.Add(-grace))
	}
	return last
}
