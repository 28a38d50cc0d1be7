// SPDX-License-Identifier: Apache-2.0

package coremetrics

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// maxReconciles is the concurrency of operatorpkg's controllers (operatorpkg: status/controller.go, NewController).
const maxReconciles = 10

// statusController is one of operatorpkg's status controllers, with other gauges.
type statusController struct {
	reconciler reconcile.Reconciler
	kind       client.Object
	changes    []predicate.Predicate
}

// newStatusController replaces the gauges of a status controller, and the deprecated ones that all of them share.
// The reconciler is the controller, or the generic one around it.
func newStatusController[T status.Object](
	gauges *status.Controller[T], reconciler reconcile.Reconciler, kind client.Object, changes ...predicate.Predicate,
) *statusController {
	replaceGauge(&gauges.ConditionCount, false)
	replaceGauge(&gauges.ConditionCurrentStatusSeconds, true)
	replaceGauge(&gauges.TerminationCurrentTimeSeconds, true)
	replaceGauge(&status.ConditionCount, false)
	replaceGauge(&status.ConditionCurrentStatusSeconds, true)
	replaceGauge(&status.TerminationCurrentTimeSeconds, true)
	return &statusController{reconciler: reconciler, kind: kind, changes: changes}
}

// Register adds the controller to a manager, like operatorpkg's controller.
func (c *statusController) Register(_ context.Context, mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named(fmt.Sprintf("operatorpkg.%s.status", strings.ToLower(reflect.TypeOf(c.kind).Elem().Name()))).
		For(c.kind, builder.WithPredicates(c.changes...)).
		WithOptions(controller.Options{MaxConcurrentReconciles: maxReconciles}).
		Complete(c)
}

// Reconcile calls operatorpkg's controller. Operatorpkg requests another reconcile after 10 s only because durations
// grow, which the gauges compute.
func (c *statusController) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	_, err := c.reconciler.Reconcile(ctx, request)
	return reconcile.Result{}, err
}

// nodeChanges are the events of Nodes that change what the status controller reads.
var nodeChanges = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*corev1.Node), e.ObjectNew.(*corev1.Node)
	return !before.DeletionTimestamp.Equal(after.DeletionTimestamp) ||
		!slices.Equal(before.Finalizers, after.Finalizers) ||
		!maps.Equal(before.Labels, after.Labels) ||
		!slices.EqualFunc(before.Status.Conditions, after.Status.Conditions, sameCondition)
}}

// sameCondition ignores heartbeats, and the message, which is only read when something else changes.
func sameCondition(a, b corev1.NodeCondition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.LastTransitionTime.Equal(&b.LastTransitionTime)
}
