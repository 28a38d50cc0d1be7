// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// Claims without a Machine are deleted with their Cluster, with and without a NodePool. Claims
// with a Machine or a Node, and claims that are not launched, stay.
func TestDeleteEnding(t *testing.T) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(schema.GroupVersion{Group: "karpenter.sh", Version: "v1"}, &karpv1.NodeClaim{}, &karpv1.NodeClaimList{})
	claim := func(name string, conditions ...string) karpv1.NodeClaim {
		c := karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{karpv1.NodePoolLabelKey: "pool"}}}
		for _, condition := range conditions {
			c.StatusConditions().SetTrue(condition)
		}
		return c
	}
	claims := []karpv1.NodeClaim{
		claim("new"),
		claim("waiting", karpv1.ConditionTypeLaunched),
		claim("alone", karpv1.ConditionTypeLaunched),
		claim("served", karpv1.ConditionTypeLaunched),
		claim("registered", karpv1.ConditionTypeLaunched, karpv1.ConditionTypeRegistered),
	}
	claims[2].Labels = nil
	all := []string{"alone", "new", "registered", "served", "waiting"}
	for name, tc := range map[string]struct {
		ending bool
		left   []string
		events int
	}{
		"a Cluster that stays":            {left: all},
		"a Cluster that is being deleted": {ending: true, left: []string{"new", "registered", "served"}, events: 2},
	} {
		t.Run(name, func(t *testing.T) {
			builder := fake.NewClientBuilder().WithScheme(scheme)
			for i := range claims {
				builder = builder.WithObjects(claims[i].DeepCopy())
			}
			c, recorder := builder.Build(), &published{}
			r := &Reconciler{clusters: &clients.Clusters{Workload: fixture.Cluster{Client: c}, Cluster: types.NamespacedName{Namespace: "fleet", Name: "served"}}, recorder: recorder}
			snap := decide(&snapshot.Snapshot{Claims: claims, State: planner.State{ClusterDeleting: tc.ending, Machines: []planner.Machine{{Name: "m", Claim: "served"}}}})
			if err := r.deleteWithCluster(t.Context(), snap); err != nil {
				t.Fatal(err)
			}
			list := &karpv1.NodeClaimList{}
			if err := c.List(t.Context(), list); err != nil {
				t.Fatal(err)
			}
			var left []string
			for i := range list.Items {
				left = append(left, list.Items[i].Name)
			}
			slices.Sort(left)
			if !slices.Equal(left, tc.left) {
				t.Errorf("left: %v, want %v", left, tc.left)
			}
			if got := len(*recorder); got != tc.events || slices.ContainsFunc(recorder.reasons(), func(reason string) bool { return reason != "ClusterDeleting" }) {
				t.Errorf("got events %v, want %d of reason ClusterDeleting", recorder.reasons(), tc.events)
			}
		})
	}
}
