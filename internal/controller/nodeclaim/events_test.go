// SPDX-License-Identifier: Apache-2.0

package nodeclaim

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/failure"
	"github.com/karpenter-capi/karpenter-capi/test/fixture"
)

// Karpenter replaces only the claims of a NodePool.
func TestFailuresSayWhatHappensNext(t *testing.T) {
	failed := &failure.Failure{Kind: failure.InsufficientCapacity, Message: "none left"}
	for name, tc := range map[string]struct {
		change func(*karpv1.NodeClaim)
		want   string
	}{
		"of a NodePool":      {func(*karpv1.NodeClaim) {}, "so Karpenter chooses another: none left"},
		"without a NodePool": {func(c *karpv1.NodeClaim) { delete(c.Labels, karpv1.NodePoolLabelKey) }, "so it is relaunched with another when one fits, because it has no NodePool: none left"},
	} {
		t.Run(name, func(t *testing.T) {
			claim := launched("c", tc.change)
			for _, event := range []string{
				claimFailed(claim, fixture.Spot, failed).Message,
				podWaits(types.NamespacedName{Namespace: "default", Name: "p"}, claim, fixture.Spot, failed).Message,
			} {
				if !strings.HasSuffix(event, tc.want) {
					t.Errorf("got %q, want it to end with %q", event, tc.want)
				}
			}
		})
	}
}
