// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

// machineTemplateReconciler reports what a machine of a template offers, for autoscaling from zero.
type machineTemplateReconciler struct {
	client.Client
}

// Reconcile fills the status of one SimulatedMachineTemplate.
func (r *machineTemplateReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	template := &infrav1.SimulatedMachineTemplate{}
	if err := r.Get(ctx, req.NamespacedName, template); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !template.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	before := template.DeepCopy()
	spec := &template.Spec.Template.Spec
	template.Status = infrav1.SimulatedMachineTemplateStatus{
		Capacity: spec.Capacity,
		NodeInfo: infrav1.NodeInfo{
			Architecture:    spec.ArchitectureOrDefault(),
			OperatingSystem: spec.OperatingSystemOrDefault(),
		},
	}
	return ctrl.Result{}, patchStatus(ctx, r.Client, before, template)
}
