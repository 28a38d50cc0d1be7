// SPDX-License-Identifier: Apache-2.0

package corestate

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
)

// A round of the provisioner moves the counts of provisional IDs to the current IDs of the
// NodeClaims, and does not change other counts.
func TestCountsFollowTheProviderID(t *testing.T) {
	const other = "sim://2"
	for name, tc := range map[string]struct {
		claims []*karpv1.NodeClaim
		nodes  []string
		counts map[string]int
		want   map[string]int
	}{
		"before the Machine has an ID": {claims: claims("1234", provisionalID), counts: map[string]int{provisionalID: 2}, want: map[string]int{provisionalID: 2}},
		"when the Machine has an ID":   {claims: claims("1234", provisionalID, realID), counts: map[string]int{provisionalID: 2}, want: map[string]int{realID: 2}},
		"when its Node has joined":     {claims: claims("1234", provisionalID, realID), nodes: []string{realID}, counts: map[string]int{provisionalID: 2}, want: map[string]int{realID: 2}},
		"the Node has a count, too":    {claims: claims("1234", provisionalID, realID), nodes: []string{realID}, counts: map[string]int{provisionalID: 2, realID: 1}, want: map[string]int{realID: 3}},
		"counted by the new ID":        {claims: claims("1234", provisionalID, realID), counts: map[string]int{realID: 2}, want: map[string]int{realID: 2}},
		"reset from a stale read":      {claims: claims("1234", provisionalID, realID, provisionalID), counts: map[string]int{provisionalID: 2}, want: map[string]int{provisionalID: 2}},
		"others keep theirs": {
			claims: append(claims("1234", provisionalID, realID), claims("5678", other)...), nodes: []string{"static://1"},
			counts: map[string]int{provisionalID: 2, other: 3, "static://1": 4}, want: map[string]int{realID: 2, other: 3, "static://1": 4},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, cluster := newCluster()
			for _, id := range tc.nodes {
				if err := cluster.UpdateNode(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: corev1.NodeSpec{ProviderID: id}}); err != nil {
					t.Fatal(err)
				}
			}
			for _, claim := range tc.claims {
				cluster.UpdateNodeClaim(claim)
			}
			cluster.UpdateBufferPodCounts(tc.counts)
			idleRound(t, cluster)
			got := map[string]int{}
			for _, id := range []string{provisionalID, realID, other, "static://1"} {
				if count := cluster.BufferPodCount(id); count > 0 {
					got[id] = count
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// claims returns the versions of a NodeClaim with a sequence of provider IDs.
func claims(uid types.UID, providerIDs ...string) []*karpv1.NodeClaim {
	var claims []*karpv1.NodeClaim
	for _, id := range providerIDs {
		claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim-" + string(uid), UID: uid}}
		claim.Status.ProviderID = id
		claims = append(claims, claim)
	}
	return claims
}

func newCluster() (client.Client, *state.Cluster) {
	workload := fake.NewClientBuilder().WithScheme(scheme.Scheme).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).Build()
	return workload, state.NewCluster(clock.RealClock{}, workload, nil)
}

// instant is a clock whose timers do not wait, so that an idle round ends immediately.
type instant struct{ clock.RealClock }

func (instant) NewTimer(time.Duration) clock.Timer { return clock.RealClock{}.NewTimer(0) }

// idleRound runs a round with nothing to schedule.
func idleRound(t *testing.T, cluster *state.Cluster) {
	t.Helper()
	core := provisioning.NewProvisioner(nil, nil, nil, cluster, instant{}, nil, nil)
	if _, err := NewProvisioner(core, cluster).Reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
}
