// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"

	"github.com/samber/lo"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/spread"
)

// peers identifies offerings that take turns if their prices differ little. Machines of another size cost another price in
// any case, so the steps of one size do not depend on which other sizes a template offers.
type peers struct {
	capacityType string
	milliCPU     int64
}

// compared returns what core compares instead of the prices of offerings, for the capacity types in spec.spread. It does not
// depend on which offerings can be chosen now: a price that changes with that would make core replace Nodes. Offerings that
// only NodeClaims still have keep their price.
func compared(template *v1alpha1.KarpenterMachineTemplate, types []Type) map[Key]float64 {
	if len(template.Spec.Spread) == 0 {
		return nil
	}
	keys, prices := map[peers][]Key{}, map[peers][]float64{}
	for i := range types {
		for j := range types[i].Offerings {
			o := &types[i].Offerings[j]
			if o.Retired || template.SpreadOf(o.CapacityType) == nil {
				continue
			}
			group := peers{o.CapacityType, types[i].Capacity.Cpu().MilliValue()}
			keys[group], prices[group] = append(keys[group], types[i].KeyOf(o)), append(prices[group], o.Price)
		}
	}
	result := map[Key]float64{}
	for group, of := range keys {
		most := lo.FromPtr(template.SpreadOf(group.capacityType).MaxPriceIncreasePercent)
		for i, price := range spread.Steps(prices[group], most) {
			result[of[i]] = price
		}
	}
	return result
}

// Paid returns what is paid for offerings of a template, in the same order. With spec.spread, core compares other numbers. It
// is zero for an offering that the template does not have.
func (c *Catalog) Paid(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate, keys []Key) ([]float64, error) {
	e, err := c.entry(ctx, template)
	if err != nil {
		return nil, err
	}
	defer e.mu.Unlock()
	return lo.Map(keys, func(key Key, _ int) float64 {
		if at, known := e.index[key.InstanceType]; known {
			return lo.FromPtr(e.types[at].Find(key.Zone, key.CapacityType)).Price
		}
		return 0
	}), nil
}
