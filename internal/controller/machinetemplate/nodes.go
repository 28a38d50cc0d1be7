// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/samber/lo"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/budget"
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

// setNodesTainted names the Nodes that joined without the taint that Karpenter needs, as long
// as their NodeClaims exist. Registered Nodes no longer have the taint, so package
// registration has recorded on their NodeClaims whether they joined with it.
func (r *Reconciler) setNodesTainted(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) error {
	claims, err := catalog.Claims(ctx, r.clusters, template)
	if err != nil {
		return err
	}
	var nodes []string
	for i := range claims {
		if node, missing := claims[i].Annotations[v1alpha1.TaintMissingAnnotation]; missing {
			nodes = append(nodes, node)
		}
	}
	conditions := template.StatusConditions()
	if len(nodes) == 0 {
		conditions.SetTrue(v1alpha1.ConditionNodesTainted)
		return nil
	}
	conditions.SetFalse(v1alpha1.ConditionNodesTainted, v1alpha1.ReasonTaintMissing, fmt.Sprintf(
		"Nodes joined without the taint %s:%s, so Pods could run on them before Karpenter registered them: let the bootstrap configuration register Nodes with it. These Nodes are %s",
		karpv1.UnregisteredNoExecuteTaint.Key, karpv1.UnregisteredNoExecuteTaint.Effect, budget.Names(nodes, maxNamed)))
	return nil
}
