// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"github.com/awslabs/operatorpkg/status"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// ConditionOf returns a condition of a claim, which must not be changed; nil if the claim lacks it.
// Unlike StatusConditions, it allocates nothing and does not add conditions that the claim lacks. So it
// can be used with claims that are shared with the cache, and for each claim of a large list.
func ConditionOf(claim *karpv1.NodeClaim, kind string) *status.Condition {
	for i := range claim.Status.Conditions {
		if claim.Status.Conditions[i].Type == kind {
			return &claim.Status.Conditions[i]
		}
	}
	return nil
}
