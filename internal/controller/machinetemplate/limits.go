// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
)

// setLimits counts the NodeClaims that maxMachines and reservations limit.
func (r *Reconciler) setLimits(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) error {
	limits, err := r.catalog.Limits(ctx, template)
	if err != nil {
		return err
	}
	claims, err := r.claims(ctx, template)
	if err != nil {
		return err
	}
	usage := limits.Use(claims)
	template.Status.NodeClaims, template.Status.LimitedOfferings = usage.Total(), usage.Status()
	return nil
}

// claims returns the NodeClaims of a template. They are shared with the cache.
func (r *Reconciler) claims(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) ([]karpv1.NodeClaim, error) {
	list := &karpv1.NodeClaimList{}
	if err := r.clusters.Workload.GetClient().List(ctx, list, client.MatchingFields{operator.NodeClaimTemplateField: template.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the NodeClaims of KarpenterMachineTemplate %s: %w", template.Name, err)
	}
	return list.Items, nil
}
