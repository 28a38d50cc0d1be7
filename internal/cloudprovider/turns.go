// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"

	"github.com/samber/lo"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/spread"
)

// takeTurns returns with which of the offerings that cost least for core a claim is launched: the first, or with spec.spread
// for its capacity type the one whose turn it is. Package catalog has made those cost the same that differ by little.
func (c *CloudProvider) takeTurns(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate, claim *karpv1.NodeClaim, cheapest []*decision, others []karpv1.NodeClaim) (*decision, error) {
	capacityType := cheapest[0].offering.CapacityType()
	if len(cheapest) == 1 || template.SpreadOf(capacityType) == nil {
		return cheapest[0], nil
	}
	alike := lo.Filter(cheapest, func(d *decision, _ int) bool { return d.offering.CapacityType() == capacityType })
	paid, err := c.catalog.Paid(ctx, template, lo.Map(alike, func(d *decision, _ int) catalog.Key { return d.key() }))
	if err != nil {
		return nil, err
	}
	taken := takenBy(template, claim, others)
	failures := map[catalog.Key]int32{}
	for _, failed := range c.catalog.Unavailable(template, c.clock.Now()) {
		failures[catalog.KeyOfMark(failed)] = failed.Failures
	}
	return alike[spread.Choose(lo.Map(alike, func(d *decision, i int) spread.Candidate {
		candidate := spread.Candidate{Price: paid[i], NodeClaims: taken[d.key()], Failures: failures[d.key()]}
		if d.offering.IsPriceOverlaid() {
			candidate.Price = d.offering.Price
		}
		return candidate
	}))], nil
}

// takenBy returns how many claims of a claim's NodePool have each offering of the template, without those that end.
func takenBy(template *v1alpha1.KarpenterMachineTemplate, claim *karpv1.NodeClaim, others []karpv1.NodeClaim) map[catalog.Key]int {
	taken := map[catalog.Key]int{}
	for i := range others {
		other := &others[i]
		if other.Spec.NodeClassRef.Name == template.Name && other.Labels[karpv1.NodePoolLabelKey] == claim.Labels[karpv1.NodePoolLabelKey] &&
			other.DeletionTimestamp.IsZero() && catalog.Launched(other) {
			taken[catalog.KeyOf(other)]++
		}
	}
	return taken
}
