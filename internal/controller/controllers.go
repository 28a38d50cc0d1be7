// SPDX-License-Identifier: Apache-2.0

// Package controller collects this operator's own reconcilers, one package each.
package controller

import (
	"github.com/awslabs/operatorpkg/controller"
	"github.com/awslabs/operatorpkg/status"
	core "sigs.k8s.io/karpenter/pkg/operator"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/machinetemplate"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/nodeclaim"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/scalableresource"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
)

// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// NewControllers returns the reconcilers that run beside Karpenter core's.
func NewControllers(op *operator.Operator, catalog *catalog.Catalog) []controller.Controller {
	return []controller.Controller{
		machinetemplate.NewReconciler(op.Clusters, catalog),
		scalableresource.NewReconciler(op.Clusters, op.EventRecorder, op.Clock),
		nodeclaim.NewReconciler(op.Clusters),
		// Events and metrics for each transition of a template's conditions.
		status.NewController[*v1alpha1.KarpenterMachineTemplate](op.GetClient(),
			op.GetEventRecorderFor(core.AppName)), //nolint:staticcheck // operatorpkg takes this kind only.
	}
}
