// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// NeedsMachine tells whether a claim is to be given a Machine if it has none.
// Only what core has persisted has effects: a claim asks for a Machine once it is
// Launched, and never again after its Node has registered.
func NeedsMachine(claim *karpv1.NodeClaim) bool {
	conditions := claim.StatusConditions()
	return claim.DeletionTimestamp.IsZero() &&
		conditions.Get(karpv1.ConditionTypeLaunched).IsTrue() &&
		!conditions.Get(karpv1.ConditionTypeRegistered).IsTrue()
}
