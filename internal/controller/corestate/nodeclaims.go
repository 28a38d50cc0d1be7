// SPDX-License-Identifier: Apache-2.0

package corestate

import (
	"context"
	"iter"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/controllers/state/informer"
	utilscontroller "sigs.k8s.io/karpenter/pkg/utils/controller"
	nodeclaimutils "sigs.k8s.io/karpenter/pkg/utils/nodeclaim"

	"github.com/karpenter-capi/karpenter-capi/internal/planner"
)

// The concurrency of core's controller (karpenter: pkg/controllers/state/informer/pod.go).
const (
	minReconciles = 10
	maxReconciles = 3000
)

// NodeClaims is core's controller that brings NodeClaims into the cluster state, and
// removes what core keeps of one under its provisional ID.
//
// Core removes a NodeClaim's old node when the ID changes, and remembers the old ID by
// the NodeClaim's name. Its provisioner writes there, too: the NodeClaim as it was
// created, without an ID (karpenter: pkg/controllers/provisioning/provisioner.go,
// Create). If that comes after the launch is known, the provisional ID is forgotten,
// and a node remains that no machine stands behind: core would schedule Pods to it and
// count it against the NodePool's limits until the next restart.
type NodeClaims struct {
	*informer.NodeClaimController
	cloudProvider cloudprovider.CloudProvider
	cluster       *state.Cluster
}

// NewNodeClaims returns core's controller as one that leaves nothing behind in the
// cluster state, which must be that of the controller.
func NewNodeClaims(core *informer.NodeClaimController, cloudProvider cloudprovider.CloudProvider, cluster *state.Cluster) *NodeClaims {
	return &NodeClaims{NodeClaimController: core, cloudProvider: cloudProvider, cluster: cluster}
}

// Register adds the controller to a manager, as core's does.
func (c *NodeClaims) Register(ctx context.Context, mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named(c.Name()).
		For(&karpv1.NodeClaim{}, builder.WithPredicates(nodeclaimutils.IsManagedPredicateFuncs(c.cloudProvider))).
		WithOptions(controller.Options{MaxConcurrentReconciles: utilscontroller.LinearScaleReconciles(utilscontroller.CPUCount(ctx), minReconciles, maxReconciles)}).
		Complete(c)
}

// Reconcile brings one NodeClaim into the cluster state. If a node remains under its
// provisional ID, core is reminded of that ID, and removes the node in a second turn.
func (c *NodeClaims) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	result, err := c.NodeClaimController.Reconcile(ctx, request)
	provisional, others := nodesOf(c.cluster.Nodes(), request.Name)
	if provisional != nil && (others || !c.cluster.NodeClaimExists(request.Name)) {
		c.cluster.UpdateNodeClaim(provisional)
		return c.NodeClaimController.Reconcile(ctx, request)
	}
	return result, err
}

// nodesOf returns the NodeClaim of the node that core has under the provisional ID of a
// NodeClaim, and whether core has another node for it.
func nodesOf(nodes iter.Seq[*state.StateNode], name string) (provisional *karpv1.NodeClaim, others bool) {
	for node := range nodes {
		switch {
		case node.NodeClaim == nil || node.NodeClaim.Name != name:
		case node.NodeClaim.Status.ProviderID == planner.ProvisionalID(node.NodeClaim.UID):
			provisional = node.NodeClaim.DeepCopy()
		default:
			others = true
		}
	}
	return provisional, others
}
