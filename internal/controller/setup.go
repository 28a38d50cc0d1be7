// SPDX-License-Identifier: Apache-2.0

// Package controller sets up all controllers: Karpenter core's controllers, and this
// operator's own reconcilers, each of which has a package below this one.
package controller

import (
	"context"
	"fmt"

	"github.com/awslabs/operatorpkg/controller"
	"github.com/awslabs/operatorpkg/status"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/metrics"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/overlay"
	"sigs.k8s.io/karpenter/pkg/controllers"
	"sigs.k8s.io/karpenter/pkg/controllers/node/health"
	corepodevents "sigs.k8s.io/karpenter/pkg/controllers/nodeclaim/podevents"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/controllers/state/informer"
	core "sigs.k8s.io/karpenter/pkg/operator"
	"sigs.k8s.io/karpenter/pkg/operator/options"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/cloudprovider"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/clusterdeletion"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/coremetrics"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/corestate"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/fleetmetrics"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/generatedcopy"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/instancetypecatalog"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/interruption"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/link"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/machinehash"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/machinetemplate"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/pendingpods"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/podevents"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/providerid"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/registration"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/remediation"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/scalableresource"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
)

// Setup adds every controller to the operator's manager: all controllers of Karpenter core,
// with this operator's CloudProvider in core's own decorations (see its main,
// kwok/main.go), and this operator's reconcilers. It returns core's state of the workload
// cluster.
func Setup(ctx context.Context, op *operator.Operator) (*state.Cluster, error) {
	catalog := catalog.New(op.Clusters).WithInventories(op.Inventories)
	provider := cloudprovider.New(op.Clusters, catalog, op.Clock).WithRecorder(op.EventRecorder)
	if options.FromContext(ctx).FeatureGates.NodeOverlay {
		provider.WithOverlays(op.InstanceTypeStore)
	}
	undecorated, workload := metrics.Decorate(provider), clients.Effective(op.GetClient())
	cloudProvider := overlay.Decorate(undecorated, workload, op.InstanceTypeStore)
	repairPolicies, err := health.NewRepairPolicyMatcher(ctx, cloudProvider)
	if err != nil {
		return nil, fmt.Errorf("checking the repair policies: %w", err)
	}
	cluster := state.NewCluster(op.Clock, workload, cloudProvider, state.WithRepairPolicyMatcher(repairPolicies))
	all := append(
		controllers.NewControllers(ctx, op.Manager, op.Clock, workload, op.EventRecorder, cloudProvider,
			undecorated, cluster, op.InstanceTypeStore, op.PredictionStore,
			controllers.WithRegistrationHook(registration.NewHook(op.Clusters, catalog))),
		newControllers(op, catalog, cluster)...)
	for _, c := range all {
		switch cores := c.(type) {
		case *corepodevents.Controller:
			c = podevents.NewController(op.Clock, workload, cloudProvider)
		case *provisioning.Provisioner:
			if options.FromContext(ctx).FeatureGates.CapacityBuffer {
				c = corestate.NewProvisioner(cores, cluster)
			}
		case *informer.NodeClaimController:
			c = corestate.NewNodeClaims(cores, op.GetClient(), cloudProvider, cluster)
		case *informer.NodeController:
			if repairPolicies != nil {
				c = informer.NewNodeController(corestate.NewNodeReader(workload, op.Clusters), cluster)
			}
		default:
			c = coremetrics.Replace(c, cluster)
		}
		if err := c.Register(ctx, op.Manager); err != nil {
			return nil, fmt.Errorf("setting up the controllers: %w", err)
		}
	}
	return cluster, nil
}

// +kubebuilder:rbac:roleName=workload-role,groups="",resources=events,verbs=create;patch

// newControllers returns this operator's own controllers.
func newControllers(op *operator.Operator, catalog *catalog.Catalog, cluster *state.Cluster) []controller.Controller {
	return append(Reconcilers(op, catalog, cluster.PodsMappedToNodeClaim),
		fleetmetrics.NewController(op.Clusters, catalog, op.Clock, op.OfferingPriceMetrics),
		// This publishes events and metrics for each transition of a template's conditions.
		status.NewController[*v1alpha1.KarpenterMachineTemplate](op.GetClient(),
			op.GetEventRecorderFor(core.AppName)), //nolint:staticcheck // operatorpkg accepts only this kind.
	)
}

// Reconcilers returns this operator's reconcilers. podsOf returns the Pods that Karpenter has decided to schedule to
// the Node of a claim.
func Reconcilers(op *operator.Operator, catalog *catalog.Catalog, podsOf func(claim string) []types.NamespacedName) []controller.Controller {
	links := link.NewReconciler(op.Clusters, op.EventRecorder)
	return []controller.Controller{
		machinetemplate.NewReconciler(op.Clusters, catalog, op.EventRecorder, op.Clock),
		generatedcopy.NewReconciler(op.Clusters, catalog, op.Clock),
		instancetypecatalog.NewReconciler(op.Clusters),
		clusterdeletion.NewReconciler(op.Clusters, op.NodeName),
		scalableresource.NewReconciler(op.Clusters, catalog, links, op.EventRecorder, op.Clock, podsOf),
		links,
		machinehash.NewReconciler(op.Clusters, catalog, op.Clock),
		providerid.NewReconciler(op.Clusters, op.EventRecorder),
		registration.NewTaintReconciler(op.GetClient()),
		pendingpods.NewReconciler(op.GetClient(), op.EventRecorder),
		interruption.NewReconciler(op.Clusters, catalog, op.InterruptionSignals, op.EventRecorder, op.Clock),
		remediation.NewReconciler(op.Clusters),
	}
}
