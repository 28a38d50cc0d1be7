// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"github.com/awslabs/operatorpkg/status"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// claimWrites counts the writes of NodeClaims by who made them. Karpenter core and the operator's own code are one
// process with one user agent, and the audit log has no objects. Therefore each version of a claim is compared with the
// version before it. A watch delivers every version, and a version is one write. Writes that failed, or that changed
// nothing, are not counted here.
type claimWrites struct {
	// Own are the writes of the operator's own code.
	Own int `json:"own"`
	// Core are all others.
	Core int `json:"core"`
}

func (w *claimWrites) add(before, after *karpv1.NodeClaim) {
	if isOwn(before, after) {
		w.Own++
	} else {
		w.Core++
	}
}

// isOwn reports whether the operator's own code made the write between two versions of a claim. It writes the provider
// ID of the Machine, which is never the first provider ID; the conditions MachineAvailable and MachineReady; and the name of another
// scalable resource. Core writes the first provider ID and the first name, which CloudProvider.Create has returned to it.
func isOwn(before, after *karpv1.NodeClaim) bool {
	if before.Status.ProviderID != after.Status.ProviderID && before.Status.ProviderID != "" {
		return true
	}
	for _, kind := range []string{v1alpha1.ConditionMachineAvailable, v1alpha1.ConditionMachineReady} {
		if !sameCondition(before.StatusConditions().Get(kind), after.StatusConditions().Get(kind)) {
			return true
		}
	}
	was, is := before.Annotations[v1alpha1.ScalableResourceAnnotation], after.Annotations[v1alpha1.ScalableResourceAnnotation]
	return was != "" && was != is
}

func sameCondition(a, b *status.Condition) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}
