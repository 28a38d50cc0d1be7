// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
)

// setLimits counts the NodeClaims that maxMachines and reservations limit.
func (r *Reconciler) setLimits(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) error {
	limits, err := r.catalog.Limits(ctx, template)
	if err != nil {
		return err
	}
	claims, err := catalog.ClaimsThatCount(ctx, r.clusters, template, limits)
	if err != nil {
		return err
	}
	usage := limits.Use(claims)
	template.Status.NodeClaims, template.Status.LimitedOfferings = usage.Total(), usage.Status()
	r.catalog.SetUsage(template, usage)
	return nil
}
