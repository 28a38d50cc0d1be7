// SPDX-License-Identifier: Apache-2.0

package corestate

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

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
	"sigs.k8s.io/karpenter/pkg/operator/options"
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
			ctx := withOptions(t.Context())
			workload, cluster, controller := newController(t)
			claim := newClaim("")
			request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(claim)}
			if err := workload.Create(ctx, claim); err != nil {
				t.Fatal(err)
			}
			if tc.node {
				if err := cluster.UpdateNode(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{ProviderID: realID}}); err != nil {
					t.Fatal(err)
				}
			}
			for _, id := range tc.ids {
				if id == late {
					cluster.UpdateNodeClaim(newClaim(""))
					continue
				}
				claim.Status.ProviderID = id
				if err := workload.Update(ctx, claim); err != nil {
					t.Fatal(err)
				}
				if _, err := controller.Reconcile(ctx, request); err != nil {
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

			if err := workload.Delete(ctx, claim); err != nil {
				t.Fatal(err)
			}
			if _, err := controller.Reconcile(ctx, request); err != nil {
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

// Core has no node for a NodeClaim that is deleted, if its deletion is the only event of it that is seen, or if another
// NodeClaim has its name since.
func TestNoNodeForADeletedNodeClaim(t *testing.T) {
	ctx := withOptions(t.Context())
	for name, again := range map[string]bool{"deleted": false, "created again": true} {
		t.Run(name, func(t *testing.T) {
			workload, cluster, controller := newController(t)
			request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(newClaim(""))}
			if again {
				if err := workload.Create(ctx, newClaim("")); err != nil {
					t.Fatal(err)
				}
				if _, err := controller.Reconcile(ctx, request); err != nil {
					t.Fatal(err)
				}
			}
			cluster.UpdateNodeClaim(newClaim(provisionalID))
			cluster.UpdateNodeClaim(newClaim("")) // the provisioner's, late
			want := view{}
			if again {
				if err := workload.Delete(ctx, newClaim("")); err != nil {
					t.Fatal(err)
				}
				other := newClaim("sim://2")
				other.UID = "5678"
				if err := workload.Create(ctx, other); err != nil {
					t.Fatal(err)
				}
				want = view{Nodes: []string{"sim://2"}, CPU: "4", Limited: "1", Active: 1}
			}
			if _, err := controller.Reconcile(ctx, request); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, viewOf(cluster)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The cost of an event does not depend on how many nodes core has.
func BenchmarkNodeClaims(b *testing.B) {
	for _, nodes := range []int{10, 1000, 5000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			ctx := withOptions(b.Context())
			workload, cluster, controller := newController(b)
			for i := range nodes {
				claim := newClaim(fmt.Sprintf("sim://other-%d", i))
				claim.Name = fmt.Sprintf("other-%d", i)
				cluster.UpdateNodeClaim(claim)
			}
			claim := newClaim(realID)
			if err := workload.Create(ctx, claim); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := controller.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(claim)}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func newController(t testing.TB) (client.Client, *state.Cluster, *NodeClaims) {
	workload, cluster := newCluster()
	provider := &cloudprovider.CloudProvider{}
	core := informer.NewNodeClaimController(workload, provider, cluster, cost.NewClusterCost(t.Context(), provider, workload))
	return workload, cluster, NewNodeClaims(core, workload, provider, cluster)
}

func withOptions(ctx context.Context) context.Context {
	return options.ToContext(ctx, &options.Options{BatchMaxDuration: 10 * time.Second})
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
