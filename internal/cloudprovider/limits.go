// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"

	"github.com/samber/lo"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
)

// full returns which offerings may have no further claim. The template's status tells
// that too, but a second late, and a burst of claims takes less. What is still too
// much, since the cache is late as well, is settled oldest first.
func (c *CloudProvider) full(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate, claim *karpv1.NodeClaim) (func(catalog.Key) bool, error) {
	limits, err := c.catalog.Limits(ctx, template)
	if err != nil {
		return nil, err
	}
	if limits.None() {
		return func(catalog.Key) bool { return false }, nil
	}
	claims, err := catalog.Claims(ctx, c.clusters, template)
	if err != nil {
		return nil, err
	}
	others := lo.Reject(claims, func(other karpv1.NodeClaim, _ int) bool { return other.UID == claim.UID })
	return limits.Use(others).Full, nil
}
