// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/samber/lo"
	"github.com/shopspring/decimal"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// addSpot adds spot to the on-demand offers of zones whose spot price is unknown. If all of them
// have one on-demand price, the catalog computes the price.
func (m *machine) addSpot(factor decimal.Decimal) {
	onDemand := lo.Filter(m.offers, func(o offer, _ int) bool { return o.capacityType == karpv1.CapacityTypeOnDemand })
	uniform := len(lo.UniqBy(onDemand, priceOf)) == 1
	for _, o := range onDemand {
		if m.offered(o.zone, karpv1.CapacityTypeSpot) {
			continue
		}
		spot := offer{zone: o.zone, capacityType: karpv1.CapacityTypeSpot}
		if !uniform && o.price != nil {
			spot.price = lo.ToPtr(o.price.Mul(factor).Round(10))
		}
		m.offers = append(m.offers, spot)
	}
}

// priceOf returns the price of an offer as the catalog writes it; empty if it is unknown.
func priceOf(o offer) string {
	if o.price == nil {
		return ""
	}
	return o.price.String()
}

// compact returns offers in as few offerings as possible: zones with the same price are one
// offering, and a price on demand that all zones have is the price of the type.
func compact(offers []offer) (price v1alpha1.Decimal, offerings []v1alpha1.Offering) {
	onDemand := lo.Uniq(lo.FilterMap(offers, func(o offer, _ int) (string, bool) {
		return priceOf(o), o.capacityType == karpv1.CapacityTypeOnDemand
	}))
	if len(onDemand) == 1 {
		price = v1alpha1.Decimal(onDemand[0])
	}
	type group struct {
		capacityType, price string
		limit               int32
	}
	zones := map[group][]v1alpha1.Zone{}
	for _, o := range offers {
		g := group{o.capacityType, priceOf(o), lo.FromPtrOr(o.maxMachines, -1)}
		if o.capacityType == karpv1.CapacityTypeOnDemand && g.price == string(price) {
			g.price = ""
		}
		zones[g] = append(zones[g], v1alpha1.Zone(o.zone))
	}
	for g, named := range zones {
		slices.Sort(named)
		o := v1alpha1.Offering{CapacityType: v1alpha1.CapacityType(g.capacityType), Price: v1alpha1.Decimal(g.price)}
		if named[0] != "" {
			o.Zones = named
		}
		if g.limit >= 0 {
			o.MaxMachines = &g.limit
		}
		offerings = append(offerings, o)
	}
	slices.SortFunc(offerings, func(a, b v1alpha1.Offering) int {
		return cmp.Or(cmp.Compare(a.CapacityType, b.CapacityType), strings.Compare(zonesOf(a), zonesOf(b)))
	})
	return price, offerings
}

func zonesOf(o v1alpha1.Offering) string {
	return strings.Join(lo.Map(o.Zones, func(z v1alpha1.Zone, _ int) string { return string(z) }), ",")
}

// hoist moves the offerings that most types have to the catalog, if they set no price.
func hoist(spec *v1alpha1.InstanceTypeCatalogSpec) {
	var best string
	types := map[string][]int{}
	for i := range spec.InstanceTypes {
		offerings := spec.InstanceTypes[i].Offerings
		if lo.SomeBy(offerings, func(o v1alpha1.Offering) bool { return o.Price != "" }) {
			continue
		}
		text, _ := json.Marshal(offerings) // it has only strings and numbers
		key := string(text)
		types[key] = append(types[key], i)
		if len(types[key]) > max(1, len(types[best])) {
			best = key
		}
	}
	for _, i := range types[best] {
		spec.Offerings, spec.InstanceTypes[i].Offerings = spec.InstanceTypes[i].Offerings, nil
	}
}
