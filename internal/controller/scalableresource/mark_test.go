// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
	"github.com/karpenter-capi/karpenter-capi/test/fixture"
)

// The second Machine of a claim still serves the claim, unless the API server has the first one:
// the same Machine, and not another one of the same name.
func TestServesAfterAll(t *testing.T) {
	first := func(uid types.UID) *clusterv1.Machine {
		return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
			Namespace: "fleet", Name: "first", UID: uid, Labels: map[string]string{v1alpha1.NodeClaimUIDLabel: "c"},
		}}
	}
	for name, tc := range map[string]struct {
		uid  types.UID
		node string // of the claim
		want bool
	}{
		"the first serves the claim":                                    {uid: "1", want: false},
		"another one of its name, with its claim":                       {uid: "2", want: true},
		"the first is linked, and the second has the Node of the claim": {uid: "1", node: "node", want: true},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
				Name: "claim", UID: "c", Annotations: map[string]string{v1alpha1.ScalableResourceAnnotation: "general"},
			}}
			claim.Status.ProviderID, claim.Status.NodeName = "real://second", tc.node
			second := first("s")
			second.Spec.ProviderID, second.Status.NodeRef.Name = "real://other", "node"
			second.Name, second.Annotations = "second", map[string]string{v1alpha1.NodeClaimAnnotation: claim.Name}
			both := fixture.Cluster{Client: fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(claim, second, first(tc.uid)).Build()}
			r := &Reconciler{clusters: &operator.Clusters{Workload: both, Management: both}}
			snap := &snapshot.Snapshot{
				Name:     "general",
				Machines: map[string]*clusterv1.Machine{"first": first("1"), "second": second},
				Plan:     planner.Plan{Served: map[types.UID]string{"c": "first"}},
			}
			got, err := r.stillServes(t.Context(), snap, second)
			if err != nil || got != tc.want {
				t.Errorf("got %t and %v, want %t", got, err, tc.want)
			}
		})
	}
}

// The time from which a Machine with a Node is spare is written, once. One without a Node is spare since it was created or unlinked.
func TestWithoutSpareTime(t *testing.T) {
	machine := func(node string, annotations map[string]string) *clusterv1.Machine {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}
		m.Status.NodeRef.Name = node
		return m
	}
	since := map[string]string{v1alpha1.SpareSinceAnnotation: "2026-01-01T12:00:00Z"}
	snap := &snapshot.Snapshot{Machines: map[string]*clusterv1.Machine{
		"booting": machine("", nil), "new": machine("n1", nil), "known": machine("n2", since), "empty": machine("n3", map[string]string{v1alpha1.SpareSinceAnnotation: ""}), "serves": machine("n4", nil),
	}}
	snap.Plan.Spares = []string{"booting", "new", "known", "empty"}
	if diff := cmp.Diff([]string{"new", "empty"}, withoutSpareTime(snap)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
