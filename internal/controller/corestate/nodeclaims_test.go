// SPDX-License-Identifier: Apache-2.0

package corestate

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/controllers/state/informer"
	"sigs.k8s.io/karpenter/pkg/state/cost"
	"sigs.k8s.io/karpenter/pkg/utils/resources"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/cloudprovider"
)

const (
	provisionalID = "nodeclaim://1234"
	realID        = "sim://1"
)

// view is what core's scheduler, limits and static capacity see of a NodePool.
type view struct {
	Nodes        []string
	CPU, Limited string
	Active       int
}

// For any change of the provider ID, core has one node for a NodeClaim and counts it once.
// It has no node after the NodeClaim is deleted.
func TestOneNodeForANodeClaim(t *testing.T) {
	// late is the provisioner's update of the state with the NodeClaim as it was created.
	const late = "late"
	for name, tc := range map[string]struct {
		ids  []string
		node bool
		want string
	}{
		"created":                             {ids: []string{""}},
		"launched":                            {ids: []string{"", provisionalID}, want: provisionalID},
		"linked":                              {ids: []string{"", provisionalID, realID}, want: realID},
		"linked, the Node joins before":       {ids: []string{"", provisionalID, realID}, node: true, want: realID},
		"reset and linked again":              {ids: []string{provisionalID, realID, provisionalID, realID}, want: realID},
		"unlinked":                            {ids: []string{provisionalID, realID, provisionalID}, want: provisionalID},
		"created late, and deleted":           {ids: []string{provisionalID, late}, want: provisionalID},
		"created late":                        {ids: []string{provisionalID, late, realID}, want: realID},
		"created late, the Node joins before": {ids: []string{provisionalID, late, realID}, node: true, want: realID},
		"created late, then reset":            {ids: []string{provisionalID, late, realID, provisionalID, realID}, want: realID},
		"created after the link":              {ids: []string{provisionalID, realID, late, realID}, want: realID},
	} {
		t.Run(name, func(t *testing.T) {
			workload, cluster, controller := newController(t)
			claim := newClaim("")
			request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(claim)}
			if err := workload.Create(t.Context(), claim); err != nil {
				t.Fatal(err)
			}
			if tc.node {
				if err := cluster.UpdateNode(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{ProviderID: realID}}); err != nil {
					t.Fatal(err)
				}
			}
			for _, id := range tc.ids {
				if id == late {
					cluster.UpdateNodeClaim(newClaim(""))
					continue
				}
				claim.Status.ProviderID = id
				if err := workload.Update(t.Context(), claim); err != nil {
					t.Fatal(err)
				}
				if _, err := controller.Reconcile(t.Context(), request); err != nil {
					t.Fatal(err)
				}
			}
			want := view{Active: 1}
			if tc.want != "" {
				want = view{Nodes: []string{tc.want}, CPU: "4", Limited: "1", Active: 1}
			}
			if diff := cmp.Diff(want, viewOf(cluster)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}

			if err := workload.Delete(t.Context(), claim); err != nil {
				t.Fatal(err)
			}
			if _, err := controller.Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(view{}, viewOf(cluster)); diff != "" {
				t.Errorf("after the deletion (-want +got):\n%s", diff)
			}
		})
	}
}

// Core counts a NodeClaim of a static NodePool that it is about to replace as active when it
// sees its own write on it, even if the provider ID never changes.
func TestStaticDriftMiscountsWithAnyProvider(t *testing.T) {
	_, cluster := newCluster()
	drifted := newClaim(realID)
	cluster.UpdateNodeClaim(drifted)
	cluster.NodePoolState.MarkNodeClaimPendingDisruption("pool", drifted.Name)
	if active, _, pending := cluster.NodePoolState.GetNodeCount("pool"); active != 0 || pending != 1 {
		t.Fatalf("got %d active and %d pending NodeClaims, want it pending", active, pending)
	}
	drifted = drifted.DeepCopy()
	drifted.StatusConditions().SetTrue(karpv1.ConditionTypeDisruptionReason)
	cluster.UpdateNodeClaim(drifted)
	if active, _, pending := cluster.NodePoolState.GetNodeCount("pool"); active != 1 || pending != 0 {
		t.Errorf("got %d active and %d pending NodeClaims: Karpenter now counts it correctly: correct docs/design/provider-ids.md", active, pending)
	}
}

func newController(t *testing.T) (client.Client, *state.Cluster, *NodeClaims) {
	workload, cluster := newCluster()
	provider := &cloudprovider.CloudProvider{}
	core := informer.NewNodeClaimController(workload, provider, cluster, cost.NewClusterCost(t.Context(), provider, workload))
	return workload, cluster, NewNodeClaims(core, provider, cluster)
}

func newClaim(providerID string) *karpv1.NodeClaim {
	claim := &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "claim", UID: types.UID("1234"), Labels: map[string]string{karpv1.NodePoolLabelKey: "pool"}},
		Spec:       karpv1.NodeClaimSpec{NodeClassRef: &karpv1.NodeClassReference{Group: v1alpha1.Group, Kind: v1alpha1.Kind, Name: "t"}},
		Status:     karpv1.NodeClaimStatus{Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}},
	}
	claim.Status.ProviderID = providerID
	return claim
}

func viewOf(cluster *state.Cluster) view {
	v := view{}
	for node := range cluster.Nodes() {
		if node.NodeClaim != nil {
			v.Nodes = append(v.Nodes, node.NodeClaim.Status.ProviderID)
		}
	}
	slices.Sort(v.Nodes)
	if used := cluster.NodePoolResourcesFor("pool"); used != nil {
		count := used[resources.Node]
		v.CPU, v.Limited = used.Cpu().String(), count.String()
	}
	v.Active, _, _ = cluster.NodePoolState.GetNodeCount("pool")
	return v
}
