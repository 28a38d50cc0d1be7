// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
)

// maxNamed is the number of offerings that the condition's message names.
const maxNamed = 5

// setOfferingsAvailable removes failures that no longer count, adds those that could not be
// written when they happened, and sets which offerings are unavailable now.
func (r *Reconciler) setOfferingsAvailable(_ context.Context, template *v1alpha1.KarpenterMachineTemplate) error {
	now := r.clock.Now()
	template.Status.UnavailableOfferings = r.catalog.Unavailable(template, now)
	unavailable := catalog.Unavailable(template.Status.UnavailableOfferings, now)
	conditions := template.StatusConditions()
	if len(unavailable) == 0 {
		conditions.SetTrue(v1alpha1.ConditionOfferingsAvailable)
		return nil
	}
	texts := lo.Map(unavailable[:min(len(unavailable), maxNamed)], func(o v1alpha1.UnavailableOffering, _ int) string {
		return fmt.Sprintf("%s until %s (%s: %s)", strings.Join(lo.Compact([]string{o.InstanceType, o.Zone, o.CapacityType}), "/"),
			o.Until.UTC().Format(time.RFC3339), o.Reason, o.Message)
	})
	if more := len(unavailable) - maxNamed; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	conditions.SetFalse(v1alpha1.ConditionOfferingsAvailable, v1alpha1.ReasonOfferingsUnavailable,
		"Karpenter does not choose these offerings: "+strings.Join(texts, "; "))
	return nil
}

// setAvailable sets how many offerings can be chosen now. It comes last, because the number
// depends on the rest of the status. It changes only if the rest changes.
func (r *Reconciler) setAvailable(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) error {
	available, err := r.catalog.CountAvailable(ctx, template, r.clock.Now())
	if err != nil {
		return err
	}
	template.Status.AvailableOfferings = int32(available)
	return nil
}
