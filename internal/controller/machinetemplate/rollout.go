// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/budget"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/drift"
	"github.com/karpenter-capi/karpenter-capi/internal/rollout"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
)

// clearRollout removes the rollout of a template without spec.rollout.
func clearRollout(template *v1alpha1.KarpenterMachineTemplate) error {
	if template.Spec.Rollout != nil {
		return nil
	}
	template.Status.Rollout = nil
	return template.StatusConditions().Clear(v1alpha1.ConditionRolloutProgressing)
}

// setRollout sets how far the rollout of a template is, given its outdated claims. It returns after what time the rollout can
// continue without an event: a soak time or a deadline ends then.
func (r *Reconciler) setRollout(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate, answers *drift.Template, claims []karpv1.NodeClaim, outdated map[types.UID]bool) (time.Duration, error) {
	if template.Spec.Rollout == nil {
		return 0, nil
	}
	revision, err := answers.Revision(ctx)
	if err != nil {
		return 0, err
	}
	in := rollout.Input{
		Spec: template.Spec.Rollout, Status: template.Status.Rollout, Revision: revision, Stored: restorable(template), Now: r.clock.Now(),
	}
	in.ResumedAt, _ = timestamp.Of(template, v1alpha1.RolloutResumedAtAnnotation)
	for i := range claims {
		node, err := r.nodeOf(ctx, &claims[i])
		if err != nil {
			return 0, err
		}
		in.Claims = append(in.Claims, rollout.Observe(&claims[i], rollout.Observed{
			Outdated: outdated[claims[i].UID], Unjoined: unjoined(template, catalog.KeyOf(&claims[i])), Node: node,
		}, in.Spec, in.Now))
	}
	var again time.Duration
	template.Status.Rollout, again = rollout.Next(in)
	rollout.SetCondition(template)
	return again, nil
}

// unjoined reports whether an offering is marked because a Node has not joined.
func unjoined(template *v1alpha1.KarpenterMachineTemplate, offering catalog.Key) bool {
	return slices.ContainsFunc(template.Status.UnavailableOfferings, func(o v1alpha1.UnavailableOffering) bool {
		return o.Reason == v1alpha1.ReasonRegistrationTimeout && catalog.KeyOfMark(o) == offering
	})
}

// restorable returns the part of the spec of a template that a rollback restores. It is nil if that is too large, or if the
// template follows a MachineDeployment: the change came from there.
func restorable(template *v1alpha1.KarpenterMachineTemplate) *runtime.RawExtension {
	if template.Spec.Template.From != nil {
		return nil
	}
	// Encoding these types cannot fail.
	content := lo.Must(json.Marshal(rollout.Restorable(template)))
	return lo.Ternary(len(content) <= budget.Spec, &runtime.RawExtension{Raw: content}, nil)
}
