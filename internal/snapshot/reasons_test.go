// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/test/fixture"
)

// A snapshot adds reasons that the planner does not know.
func TestReasons(t *testing.T) {
	for name, tc := range map[string]struct {
		snap Snapshot
		ends bool // the claim
		want map[string]planner.Reason
	}{
		"a limit was reached":    {snap: Snapshot{exceeding: sets.New[types.UID]("c")}, ends: true, want: map[string]planner.Reason{}},
		"a claim waits":          {want: map[string]planner.Reason{"NodeClaim c": planner.NoSpareMachine}},
		"a limit is reached":     {snap: Snapshot{exceeding: sets.New[types.UID]("c")}, want: map[string]planner.Reason{"NodeClaim c": LimitIsReached}},
		"the Cluster is deleted": {snap: Snapshot{ClusterDeleting: true}, want: map[string]planner.Reason{"replicas": ClusterIsDeleting}},
		"the resource rolls out": {snap: Snapshot{Suspended: true}, want: map[string]planner.Reason{"replicas": ControlledByOthers}},
		"both, with a limit":     {snap: Snapshot{Suspended: true, ClusterDeleting: true, exceeding: sets.New[types.UID]("c")}, want: map[string]planner.Reason{"NodeClaim c": LimitIsReached, "replicas": ControlledByOthers}},
	} {
		t.Run(name, func(t *testing.T) {
			s := tc.snap
			s.Now, s.Claims = fixture.Noon, []karpv1.NodeClaim{*fixture.Claim(time.Minute)}
			if tc.ends {
				s.Claims[0].DeletionTimestamp = new(metav1.NewTime(fixture.Noon))
			}
			s.plan()
			if diff := cmp.Diff(tc.want, s.Plan.Reasons); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
