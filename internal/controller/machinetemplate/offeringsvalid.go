// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
)

// setOfferingsValid reports all invalid instance types and offerings of the template and its
// discovery. It comes after setInstanceTypesReady, because it reads status.invalidOfferings.
func (r *Reconciler) setOfferingsValid(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) error {
	types, problems, err := r.catalog.Types(ctx, template)
	if err != nil {
		return err
	}
	pools, err := r.poolsOf(ctx, template)
	if err != nil {
		return err
	}
	problems = append(slices.Clone(problems), append(invalidOfferings(template), catalog.Untolerated(types, pools)...)...)
	conditions := template.StatusConditions()
	if len(problems) == 0 {
		conditions.SetTrue(v1alpha1.ConditionOfferingsValid)
		return nil
	}
	conditions.SetFalse(v1alpha1.ConditionOfferingsValid, problems[0].Reason, textOf(problems))
	return nil
}

// poolsOf returns the NodePools that use a template, by name. They are shared with the cache.
func (r *Reconciler) poolsOf(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) ([]karpv1.NodePool, error) {
	list := &karpv1.NodePoolList{}
	if err := r.clusters.Workload.GetClient().List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the NodePools of KarpenterMachineTemplate %s: %w", template.Name, err)
	}
	pools := slices.DeleteFunc(slices.Clone(list.Items), func(pool karpv1.NodePool) bool {
		ref := pool.Spec.Template.Spec.NodeClassRef
		return !clients.IsTemplate(ref) || ref.Name != template.Name
	})
	slices.SortFunc(pools, func(a, b karpv1.NodePool) int { return strings.Compare(a.Name, b.Name) })
	return pools, nil
}
