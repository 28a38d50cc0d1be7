// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	"github.com/shopspring/decimal"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

const (
	onDemand = karpv1.CapacityTypeOnDemand
	spot     = karpv1.CapacityTypeSpot
)

// at returns an offer; without a price if that is empty.
func at(zone, capacityType, price string) offer {
	o := offer{zone: zone, capacityType: capacityType}
	if price != "" {
		o.price = lo.ToPtr(decimal.RequireFromString(price))
	}
	return o
}

func TestCompact(t *testing.T) {
	for name, tc := range map[string]struct {
		offers []offer
		price  v1alpha1.Decimal
		want   []v1alpha1.Offering
	}{
		"one price in all zones": {[]offer{at("b", onDemand, "0.10"), at("a", onDemand, "0.1")}, "0.1",
			[]v1alpha1.Offering{{Zones: []v1alpha1.Zone{"a", "b"}, CapacityType: onDemand}}},
		"prices by zone": {[]offer{at("a", onDemand, "1"), at("b", onDemand, "2"), at("c", onDemand, "1")}, "",
			[]v1alpha1.Offering{{Zones: []v1alpha1.Zone{"a", "c"}, CapacityType: onDemand, Price: "1"}, {Zones: []v1alpha1.Zone{"b"}, CapacityType: onDemand, Price: "2"}}},
		"spot": {[]offer{at("a", spot, "0.3"), at("a", onDemand, "1"), at("b", spot, "0.4"), at("b", onDemand, "1")}, "1",
			[]v1alpha1.Offering{{Zones: []v1alpha1.Zone{"a", "b"}, CapacityType: onDemand}, {Zones: []v1alpha1.Zone{"a"}, CapacityType: spot, Price: "0.3"}, {Zones: []v1alpha1.Zone{"b"}, CapacityType: spot, Price: "0.4"}}},
		"the first zone is not the cheapest": {[]offer{at("a", onDemand, "2"), at("b", onDemand, "1"), at("c", onDemand, "3")}, "",
			[]v1alpha1.Offering{{Zones: []v1alpha1.Zone{"a"}, CapacityType: onDemand, Price: "2"}, {Zones: []v1alpha1.Zone{"b"}, CapacityType: onDemand, Price: "1"}, {Zones: []v1alpha1.Zone{"c"}, CapacityType: onDemand, Price: "3"}}},
		"spot at the price on demand": {[]offer{at("a", spot, "1"), at("a", onDemand, "1")}, "1",
			[]v1alpha1.Offering{{Zones: []v1alpha1.Zone{"a"}, CapacityType: onDemand}, {Zones: []v1alpha1.Zone{"a"}, CapacityType: spot, Price: "1"}}},
		"no zones":  {[]offer{at("", onDemand, "1")}, "1", []v1alpha1.Offering{{CapacityType: onDemand}}},
		"no prices": {[]offer{at("a", onDemand, ""), at("b", onDemand, "")}, "", []v1alpha1.Offering{{Zones: []v1alpha1.Zone{"a", "b"}, CapacityType: onDemand}}},
		"limits": {[]offer{{zone: "a", capacityType: onDemand, maxMachines: lo.ToPtr[int32](0)}, at("b", onDemand, "")}, "",
			[]v1alpha1.Offering{{Zones: []v1alpha1.Zone{"a"}, CapacityType: onDemand, MaxMachines: lo.ToPtr[int32](0)}, {Zones: []v1alpha1.Zone{"b"}, CapacityType: onDemand}}},
	} {
		t.Run(name, func(t *testing.T) {
			price, offerings := compact(tc.offers)
			if price != tc.price {
				t.Errorf("price %q, want %q", price, tc.price)
			}
			if diff := cmp.Diff(tc.want, offerings); diff != "" {
				t.Errorf("offerings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAddSpot(t *testing.T) {
	for name, tc := range map[string]struct {
		offers []offer
		want   []string
	}{
		"computed from one price":    {[]offer{at("a", onDemand, "1"), at("b", onDemand, "1")}, []string{"a:", "b:"}},
		"computed from two prices":   {[]offer{at("a", onDemand, "1"), at("b", onDemand, "2")}, []string{"a:0.25", "b:0.5"}},
		"computed where it is known": {[]offer{at("a", onDemand, "1"), at("b", onDemand, "")}, []string{"a:0.25", "b:"}},
		"known prices are not lost":  {[]offer{at("a", onDemand, "1"), at("a", spot, "0.7"), at("b", onDemand, "1")}, []string{"a:0.7", "b:"}},
		"computed from the capacity": {[]offer{at("a", onDemand, "")}, []string{"a:"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := machine{offers: tc.offers}
			m.addSpot(decimal.RequireFromString("0.25"))
			got := lo.FilterMap(m.offers, func(o offer, _ int) (string, bool) { return o.zone + ":" + priceOf(o), o.capacityType == spot })
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("spot (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHoist(t *testing.T) {
	most := []v1alpha1.Offering{{Zones: []v1alpha1.Zone{"a", "b"}}}
	other := []v1alpha1.Offering{{Zones: []v1alpha1.Zone{"a"}}}
	priced := []v1alpha1.Offering{{Zones: []v1alpha1.Zone{"a"}, Price: "1"}}
	for name, tc := range map[string]struct {
		types [][]v1alpha1.Offering
		list  []v1alpha1.Offering
		want  [][]v1alpha1.Offering
	}{
		"most types":      {[][]v1alpha1.Offering{other, most, most, priced}, most, [][]v1alpha1.Offering{other, nil, nil, priced}},
		"before others":   {[][]v1alpha1.Offering{most, most, most, other, other}, most, [][]v1alpha1.Offering{nil, nil, nil, other, other}},
		"all differ":      {[][]v1alpha1.Offering{other, most}, nil, [][]v1alpha1.Offering{other, most}},
		"prices are kept": {[][]v1alpha1.Offering{priced, priced}, nil, [][]v1alpha1.Offering{priced, priced}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := v1alpha1.InstanceTypeCatalogSpec{InstanceTypes: lo.Map(tc.types, func(o []v1alpha1.Offering, _ int) v1alpha1.InstanceType { return v1alpha1.InstanceType{Offerings: o} })}
			hoist(&spec)
			if diff := cmp.Diff(tc.list, spec.Offerings); diff != "" {
				t.Errorf("of the catalog (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, lo.Map(spec.InstanceTypes, func(it v1alpha1.InstanceType, _ int) []v1alpha1.Offering { return it.Offerings })); diff != "" {
				t.Errorf("of the types (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReported(t *testing.T) {
	for name, tc := range map[string]struct {
		sold      int64
		allowance string
		want      int64
	}{
		"in whole MiB": {8 * gibibyte, "7.5", 7577 * mebibyte},
		"nothing":      {8*gibibyte + 1, "0", 8 * gibibyte},
		"half":         {gibibyte, "50", 512 * mebibyte},
	} {
		t.Run(name, func(t *testing.T) {
			if got := reported(tc.sold, decimal.RequireFromString(tc.allowance)); got != tc.want {
				t.Errorf("%d, want %d", got, tc.want)
			}
		})
	}
}
