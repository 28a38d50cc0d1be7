// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"time"

	"github.com/samber/lo"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/budget"
)

// maxNamed is how many NodeClaims a message names.
const maxNamed = 5

// SetCondition sets the condition RolloutProgressing of a template with spec.rollout to what its status has. The message has no
// counts, so that it changes only with a step.
func SetCondition(template *v1alpha1.KarpenterMachineTemplate) {
	spec, s, conditions := template.Spec.Rollout, template.Status.Rollout, template.StatusConditions()
	switch {
	case s != nil && s.Step == v1alpha1.RolloutStopped:
		conditions.SetFalse(v1alpha1.ConditionRolloutProgressing, v1alpha1.ReasonRolloutStopped, fmt.Sprintf(
			"No outdated Node is replaced any more because %s. Correct the template, or run \"kubectl karpenter-capi rollout undo %s\", or \"rollout resume %s\" to try again", s.Message, template.Name, template.Name))
	case lo.FromPtr(spec.Paused):
		conditions.SetUnknownWithReason(v1alpha1.ConditionRolloutProgressing, v1alpha1.ReasonRolloutPaused, "No outdated Node is replaced while spec.rollout.paused is true")
	case s.Step == v1alpha1.RolloutCanary:
		conditions.SetTrueWithReason(v1alpha1.ConditionRolloutProgressing, v1alpha1.ReasonRolloutCanary, canaryMessage(s))
	case s.Step == v1alpha1.RolloutSoaking:
		conditions.SetTrueWithReason(v1alpha1.ConditionRolloutProgressing, v1alpha1.ReasonRolloutSoaking, fmt.Sprintf(
			"New Nodes are observed until %s before the other outdated Nodes are replaced", (&Input{Spec: spec}).soakedAt(s).UTC().Format(time.RFC3339)))
	case s.Step == v1alpha1.RolloutRolling:
		conditions.SetTrueWithReason(v1alpha1.ConditionRolloutProgressing, v1alpha1.ReasonRolloutRolling, "Karpenter replaces all outdated Nodes within the disruption budgets of their NodePools")
	default:
		conditions.SetTrueWithReason(v1alpha1.ConditionRolloutProgressing, v1alpha1.ReasonRolloutComplete, "All Nodes are what the template generates")
	}
}

func canaryMessage(s *v1alpha1.RolloutStatus) string {
	if len(s.Canary) == 0 {
		return "The rollout waits for a new Node"
	}
	names := lo.Map(s.Canary, func(chosen v1alpha1.RolloutNodeClaim, _ int) string { return chosen.Name })
	return fmt.Sprintf("Karpenter replaces the Nodes of %s first", budget.Names(names, maxNamed))
}
