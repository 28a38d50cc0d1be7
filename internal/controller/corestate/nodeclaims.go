// SPDX-License-Identifier: Apache-2.0

package corestate

import (
	"context"
	"iter"
	"sync"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

// NodeClaims is core's controller that adds NodeClaims to the cluster state, and also
// removes the node that core keeps under a provisional ID.
//
// When the ID of a NodeClaim changes, core removes the old node. It remembers the old ID by
// the NodeClaim's name. Its provisioner also updates the state, with the NodeClaim as it was
// created, without an ID (karpenter: pkg/controllers/provisioning/provisioner.go, Create).
// If it does so after the launch is known, core forgets the provisional ID, and a node
// without a machine remains: core would schedule Pods to it and count it for the NodePool's
// limits until the next restart.
//
// All nodes are read only if such a node may remain, so that the cost of an event does not
// grow with the cluster.
type NodeClaims struct {
	*informer.NodeClaimController
	claims        client.Reader
	cloudProvider cloudprovider.CloudProvider
	cluster       *state.Cluster
	// uids has the UIDs of NodeClaims by name, for the event that finds the NodeClaim deleted. It saves work only:
	// without a UID, all nodes are read.
	uids sync.Map
}

// NewNodeClaims returns a NodeClaims for core's controller and its cluster state. It reads NodeClaims from claims.
func NewNodeClaims(
	core *informer.NodeClaimController, claims client.Reader, cloudProvider cloudprovider.CloudProvider, cluster *state.Cluster,
) *NodeClaims {
	return &NodeClaims{NodeClaimController: core, claims: claims, cloudProvider: cloudProvider, cluster: cluster}
}

// Register adds the controller to a manager, like core's controller.
func (c *NodeClaims) Register(ctx context.Context, mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named(c.Name()).
		For(&karpv1.NodeClaim{}, builder.WithPredicates(nodeclaimutils.IsManagedPredicateFuncs(c.cloudProvider))).
		WithOptions(controller.Options{MaxConcurrentReconciles: utilscontroller.LinearScaleReconciles(utilscontroller.CPUCount(ctx), minReconciles, maxReconciles)}).
		Complete(c)
}

// Reconcile adds one NodeClaim to the cluster state. If a node remains under its provisional
// ID, it restores that ID in core's state and calls core again, which removes the node.
func (c *NodeClaims) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	result, err := c.NodeClaimController.Reconcile(ctx, request)
	if !c.mayRemain(ctx, request) {
		return result, err
	}
	provisional, others := nodesOf(c.cluster.Nodes(), request.Name)
	if provisional != nil && (others || !c.cluster.NodeClaimExists(request.Name)) {
		c.cluster.UpdateNodeClaim(provisional)
		return c.NodeClaimController.Reconcile(ctx, request)
	}
	return result, err
}

// mayRemain reports whether core may have a node under the provisional ID of a NodeClaim that has another ID or no
// longer exists.
func (c *NodeClaims) mayRemain(ctx context.Context, request reconcile.Request) bool {
	claim := &karpv1.NodeClaim{}
	err := c.claims.Get(ctx, request.NamespacedName, claim, client.UnsafeDisableDeepCopy)
	if errors.IsNotFound(err) {
		uid, known := c.uids.LoadAndDelete(request.Name)
		return !known || c.hasNode(ctx, planner.ProvisionalID(uid.(types.UID)))
	}
	if err != nil {
		return true
	}
	if before, known := c.uids.Swap(request.Name, claim.UID); known && before != claim.UID {
		return true
	}
	id, provisional := claim.Status.ProviderID, planner.ProvisionalID(claim.UID)
	return id != "" && id != provisional && c.hasNode(ctx, provisional)
}

// hasNode reports whether core has a node under a provider ID. Core can nominate only such a node, and offers no other
// question by ID. The nomination has no effect: the node is removed, or has a NodeClaim that waits for its Machine.
func (c *NodeClaims) hasNode(ctx context.Context, providerID string) bool {
	c.cluster.NominateNodeForPod(ctx, providerID)
	return c.cluster.IsNodeNominated(providerID)
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
