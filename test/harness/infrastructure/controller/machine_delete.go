// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

// reconcileDelete terminates the instance: the heartbeat of its Node stops, and after the termination delay the
// instance no longer exists. The Node itself stays, because Cluster API deletes it.
func (r *machineReconciler) reconcileDelete(ctx context.Context, read, machine *infrav1.SimulatedMachine) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(machine, infrav1.MachineFinalizer) {
		return ctrl.Result{}, nil
	}
	// An instance that was never started is removed without a delay.
	if machine.Status.StartTime == nil && machine.Spec.ProviderID == "" {
		return ctrl.Result{}, r.removeFinalizer(ctx, read, machine)
	}
	if machine.Status.TerminationTime == nil {
		machine.Status.TerminationTime = ptr.To(microTime(r.clock.Now()))
		r.setStatus(machine, metav1.ConditionFalse, clusterv1.DeletingReason, "Instance is being terminated")
		return ctrl.Result{}, patchStatus(ctx, r.Client, read, machine)
	}
	if err := r.stopHeartbeat(ctx, machine); err != nil {
		return ctrl.Result{}, err
	}
	// The end of the instance causes no event in the API; it follows from the recorded time.
	gone := machine.Status.TerminationTime.Add(terminationDelay(&machine.Spec, machine.UID))
	if wait := gone.Sub(r.clock.Now()); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	return ctrl.Result{}, r.removeFinalizer(ctx, read, machine)
}

// stopHeartbeat stops the heartbeat of the Node, if there is one. It ignores the record of the join, because a crash
// can happen between the creation of the Node and its record.
func (r *machineReconciler) stopHeartbeat(ctx context.Context, machine *infrav1.SimulatedMachine) error {
	if machine.Spec.ProviderID == "" {
		return nil
	}
	node, err := r.nodeOf(ctx, machine)
	if err != nil || node == nil {
		return err
	}
	if r.nodeReady {
		return r.kubelet().stop(ctx, node)
	}
	return StopHeartbeat(ctx, r.workload, node, microTime(r.clock.Now()))
}

func (r *machineReconciler) removeFinalizer(ctx context.Context, read, machine *infrav1.SimulatedMachine) error {
	controllerutil.RemoveFinalizer(machine, infrav1.MachineFinalizer)
	ctrl.LoggerFrom(ctx).V(1).Info("Instance no longer exists")
	return r.Patch(ctx, machine, locked(read))
}
