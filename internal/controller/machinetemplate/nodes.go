// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/budget"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/drift"
)

// setNodesCurrent counts the Nodes that are not what the template generates now, and sets how far their rollout is. Both
// conditions stay as they are while that cannot be decided. It returns after what time the rollout can continue.
func (r *Reconciler) setNodesCurrent(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) (time.Duration, error) {
	if err := clearRollout(template); err != nil {
		return 0, err
	}
	claims, err := catalog.Claims(ctx, r.clusters, template)
	if err != nil {
		return 0, err
	}
	answers, decided, err := drift.Of(ctx, r.clusters, r.catalog, template)
	if err != nil || !decided {
		return 0, err
	}
	outdated, counts := map[types.UID]bool{}, map[string]int{}
	for i := range claims {
		reason, err := answers.Reason(ctx, &claims[i])
		if err != nil {
			return 0, err
		}
		if reason != "" {
			counts[string(reason)]++
			outdated[claims[i].UID] = true
		}
	}
	setCounts(template, counts, len(claims))
	return r.setRollout(ctx, template, answers, claims, outdated)
}

// setCounts sets how many Nodes are outdated, by reason.
func setCounts(template *v1alpha1.KarpenterMachineTemplate, outdated map[string]int, claims int) {
	conditions := template.StatusConditions()
	if len(outdated) == 0 {
		conditions.SetTrue(v1alpha1.ConditionNodesCurrent)
		return
	}
	counts := lo.Map(slices.Sorted(maps.Keys(outdated)), func(reason string, _ int) string {
		return fmt.Sprintf("%s %d", reason, outdated[reason])
	})
	next := "Karpenter replaces them within the disruption budgets of their NodePools"
	if template.Spec.Rollout != nil {
		next = "the condition RolloutProgressing reports which of them are replaced now"
	}
	conditions.SetFalse(v1alpha1.ConditionNodesCurrent, v1alpha1.ReasonNodesOutdated,
		fmt.Sprintf("%d of %d Nodes are not what the template generates now (%s): %s", lo.Sum(lo.Values(outdated)), claims, strings.Join(counts, ", "), next))
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

// nodeOf returns the Node of a registered claim, which is shared with the cache; nil if there is none.
func (r *Reconciler) nodeOf(ctx context.Context, claim *karpv1.NodeClaim) (*corev1.Node, error) {
	if claim.Status.NodeName == "" {
		return nil, nil
	}
	node := &corev1.Node{}
	if err := r.clusters.Workload.GetClient().Get(ctx, types.NamespacedName{Name: claim.Status.NodeName}, node, client.UnsafeDisableDeepCopy); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("getting Node %s of NodeClaim %s: %w", claim.Status.NodeName, claim.Name, err)
	}
	return node, nil
}
