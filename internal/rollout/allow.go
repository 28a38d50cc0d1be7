// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// MayReplace reports whether a rollout allows that an outdated claim is replaced now. revision is what the template
// generates now. Without spec.rollout, all claims may be replaced. A complete rollout allows nothing: the claim has become
// outdated since, and begins another one.
func MayReplace(template *v1alpha1.KarpenterMachineTemplate, revision string, claim types.UID) bool {
	spec, current := template.Spec.Rollout, template.Status.Rollout
	switch {
	case spec == nil:
		return true
	case lo.FromPtr(spec.Paused) || current == nil || current.Revision != revision:
		return false
	case current.Step == v1alpha1.RolloutCanary:
		return slices.ContainsFunc(current.Canary, func(chosen v1alpha1.RolloutNodeClaim) bool { return chosen.UID == string(claim) })
	default:
		return current.Step == v1alpha1.RolloutRolling
	}
}
