// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"

	"github.com/samber/lo"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
)

// full returns a function that reports whether an offering is at its limit. The template's
// status also has this, but up to a second late, and a burst of claims takes less time.
// The cache is late, too: if claims exceed a limit, the oldest keep the offering.
func (c *CloudProvider) full(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate, claim *karpv1.NodeClaim) (func(catalog.Key) bool, error) {
	limits, err := c.catalog.Limits(ctx, template)
	if err != nil {
		return nil, err
	}
	if limits.None() {
		return func(catalog.Key) bool { return false }, nil
	}
	claims, err := catalog.ClaimsThatCount(ctx, c.clusters, template, limits)
	if err != nil {
		return nil, err
	}
	others := lo.Reject(claims, func(other karpv1.NodeClaim, _ int) bool { return other.UID == claim.UID })
	return limits.Use(others).Full, nil
}
