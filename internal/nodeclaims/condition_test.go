// SPDX-License-Identifier: Apache-2.0

package nodeclaims

import (
	"testing"

	"github.com/awslabs/operatorpkg/status"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

func TestConditionOf(t *testing.T) {
	launched := status.Condition{Type: karpv1.ConditionTypeLaunched, Status: metav1.ConditionTrue, Reason: "Launched"}
	registered := status.Condition{Type: karpv1.ConditionTypeRegistered, Status: metav1.ConditionFalse, Reason: "NodeNotFound"}
	for name, tc := range map[string]struct {
		has  []status.Condition
		want *status.Condition
	}{
		"no condition":                 {},
		"another condition":            {has: []status.Condition{launched}},
		"the condition":                {has: []status.Condition{registered}, want: &registered},
		"the condition after another":  {has: []status.Condition{launched, registered}, want: &registered},
		"the condition before another": {has: []status.Condition{registered, launched}, want: &registered},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &karpv1.NodeClaim{Status: karpv1.NodeClaimStatus{Conditions: tc.has}}
			before := claim.DeepCopy()
			allocations := testing.AllocsPerRun(10, func() { ConditionOf(claim, karpv1.ConditionTypeRegistered) })
			if diff := cmp.Diff(tc.want, ConditionOf(claim, karpv1.ConditionTypeRegistered)); diff != "" {
				t.Errorf("wrong condition (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, claim); diff != "" {
				t.Errorf("the claim was changed (-want +got):\n%s", diff)
			}
			if allocations > 0 {
				t.Errorf("got %v allocations, want none", allocations)
			}
		})
	}
}
