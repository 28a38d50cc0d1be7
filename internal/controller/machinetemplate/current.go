// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/drift"
)

// setNodesCurrent counts the Nodes that are not what the template generates now. The condition stays
// as it is while that cannot be decided.
func (r *Reconciler) setNodesCurrent(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) error {
	claims, err := catalog.Claims(ctx, r.clusters, template)
	if err != nil {
		return err
	}
	answers, decided, err := drift.Of(ctx, r.clusters, r.catalog, template)
	if err != nil || !decided {
		return err
	}
	outdated, total := map[string]int{}, 0
	for i := range claims {
		reason, err := answers.Reason(ctx, &claims[i])
		if err != nil {
			return err
		}
		if reason != "" {
			outdated[string(reason)]++
			total++
		}
	}
	conditions := template.StatusConditions()
	if total == 0 {
		conditions.SetTrue(v1alpha1.ConditionNodesCurrent)
		return nil
	}
	counts := lo.Map(slices.Sorted(maps.Keys(outdated)), func(reason string, _ int) string {
		return fmt.Sprintf("%s %d", reason, outdated[reason])
	})
	conditions.SetFalse(v1alpha1.ConditionNodesCurrent, v1alpha1.ReasonNodesOutdated,
		fmt.Sprintf("%d of %d Nodes are not what the template generates now (%s): Karpenter replaces them within the disruption budgets of their NodePools", total, len(claims), strings.Join(counts, ", ")))
	return nil
}
