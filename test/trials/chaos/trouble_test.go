// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

func TestPlan(t *testing.T) {
	for name, tc := range map[string]struct {
		kills  int
		others bool
		want   map[string]int
	}{
		"of all components":    {kills: 18, others: true, want: map[string]int{stack.Operator: 19, stack.APIServer: 2, stack.ClusterAPI: 2, stack.Etcd: 2}},
		"with few kills":       {kills: 6, others: true, want: map[string]int{stack.Operator: 7, stack.APIServer: 2, stack.ClusterAPI: 2, stack.Etcd: 2}},
		"of the operator only": {kills: 4, want: map[string]int{stack.Operator: 4}},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]int{}
			for _, b := range plan(rand.New(rand.NewPCG(1, 0)), tc.kills, tc.others) {
				got[b.component]++
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}
