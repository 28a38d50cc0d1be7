// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/property"
)

// in is a requirement for one of the values of a label.
func in(key string, values ...v1alpha1.LabelValue) v1alpha1.OfferingRequirement {
	return v1alpha1.OfferingRequirement{Key: key, Operator: v1alpha1.RequirementIn, Values: values}
}

// discount is an adjustment that takes half off.
func discount(requirements ...v1alpha1.OfferingRequirement) v1alpha1.PriceAdjustment {
	return v1alpha1.PriceAdjustment{Name: "half", DiscountPercent: "50", Requirements: requirements}
}

// adjustable returns a catalog of two families with list prices of 1 on demand, 0.5 for spot and next to nothing for a
// reservation.
func adjustable(pricing *v1alpha1.CatalogPricing) *v1alpha1.InstanceTypeCatalog {
	c := listed()
	c.Spec.Currency, c.Spec.Pricing = "USD", pricing
	c.Spec.Offerings = []v1alpha1.Offering{zonal("on-demand", "1", "a", "b"), zonal("spot", "0.5", "a")}
	for _, family := range []string{"m6i", "c6i"} {
		c.Spec.InstanceTypes = append(c.Spec.InstanceTypes, v1alpha1.InstanceType{
			Name: family + ".large", Capacity: list("cpu", "2", "memory", "8Gi"), Labels: map[string]v1alpha1.LabelValue{v1alpha1.InstanceFamilyLabel: v1alpha1.LabelValue(family)},
		})
	}
	c.Spec.InstanceTypes[1].Offerings = append(slices.Clone(c.Spec.Offerings), v1alpha1.Offering{CapacityType: "reserved", Price: "0.0000001", Reservation: &v1alpha1.Reservation{ID: "cr-1", Count: 2}})
	return c
}

// TestAdjustments tests what Karpenter gets for each offering, and which adjustments are reported as wrong.
func TestAdjustments(t *testing.T) {
	const family, capacityType = v1alpha1.InstanceFamilyLabel, karpv1.CapacityTypeLabelKey
	surcharge := func(amount v1alpha1.Decimal, requirements ...v1alpha1.OfferingRequirement) v1alpha1.PriceAdjustment {
		return v1alpha1.PriceAdjustment{Name: "more", SurchargePerHour: amount, Requirements: requirements}
	}
	interruption := v1alpha1.PriceAdjustment{Name: "interruption", Interruption: &v1alpha1.PriceOfInterruption{PercentPerMonth: "20", CostHours: 73}}
	unchanged := map[string]float64{
		"m6i.large/a/on-demand": 1, "m6i.large/b/on-demand": 1, "m6i.large/a/spot": 0.5,
		"c6i.large/a/on-demand": 1, "c6i.large/b/on-demand": 1, "c6i.large/a/spot": 0.5, "c6i.large/reserved": 1e-7,
	}
	for name, tc := range map[string]struct {
		adjustments []v1alpha1.PriceAdjustment
		conversion  *v1alpha1.CurrencyConversion
		want        map[string]float64 // only what is not as in unchanged
		problems    string
	}{
		"none":                                   {},
		"a family":                               {adjustments: []v1alpha1.PriceAdjustment{discount(in(family, "m6i"))}, want: map[string]float64{"m6i.large/a/on-demand": 0.5, "m6i.large/b/on-demand": 0.5, "m6i.large/a/spot": 0.25}},
		"an instance type":                       {adjustments: []v1alpha1.PriceAdjustment{discount(in(corev1.LabelInstanceTypeStable, "m6i.large"), in(capacityType, "spot"))}, want: map[string]float64{"m6i.large/a/spot": 0.25}},
		"a zone":                                 {adjustments: []v1alpha1.PriceAdjustment{discount(in(corev1.LabelTopologyZone, "b"))}, want: map[string]float64{"m6i.large/b/on-demand": 0.5, "c6i.large/b/on-demand": 0.5}},
		"a label that follows from the capacity": {adjustments: []v1alpha1.PriceAdjustment{discount(in(v1alpha1.InstanceCPULabel, "2"), in(capacityType, "spot"))}, want: map[string]float64{"m6i.large/a/spot": 0.25, "c6i.large/a/spot": 0.25}},
		"a default label":                        {adjustments: []v1alpha1.PriceAdjustment{discount(in(corev1.LabelArchStable, "amd64"), in(capacityType, "spot"))}, want: map[string]float64{"m6i.large/a/spot": 0.25, "c6i.large/a/spot": 0.25}},
		"no zone":                                {adjustments: []v1alpha1.PriceAdjustment{discount(v1alpha1.OfferingRequirement{Key: corev1.LabelTopologyZone, Operator: v1alpha1.RequirementDoesNotExist})}, want: map[string]float64{"c6i.large/reserved": 5e-8}},
		"a reservation":                          {adjustments: []v1alpha1.PriceAdjustment{discount(v1alpha1.OfferingRequirement{Key: v1alpha1.ReservationIDLabel, Operator: v1alpha1.RequirementExists})}, want: map[string]float64{"c6i.large/reserved": 5e-8}},
		"all but a family":                       {adjustments: []v1alpha1.PriceAdjustment{discount(v1alpha1.OfferingRequirement{Key: family, Operator: v1alpha1.RequirementNotIn, Values: []v1alpha1.LabelValue{"c6i"}}, in(capacityType, "on-demand"))}, want: map[string]float64{"m6i.large/a/on-demand": 0.5, "m6i.large/b/on-demand": 0.5}},
		"everything":                             {adjustments: []v1alpha1.PriceAdjustment{discount()}, want: map[string]float64{"m6i.large/a/on-demand": 0.5, "m6i.large/b/on-demand": 0.5, "m6i.large/a/spot": 0.25, "c6i.large/a/on-demand": 0.5, "c6i.large/b/on-demand": 0.5, "c6i.large/a/spot": 0.25, "c6i.large/reserved": 5e-8}},
		"a surcharge without discount":           {adjustments: []v1alpha1.PriceAdjustment{surcharge("0.1", in(capacityType, "spot")), discount(in(capacityType, "spot"))}, want: map[string]float64{"m6i.large/a/spot": 0.35, "c6i.large/a/spot": 0.35}},
		"interruptions of spot":                  {adjustments: []v1alpha1.PriceAdjustment{interruption}, want: map[string]float64{"m6i.large/a/spot": 0.51, "c6i.large/a/spot": 0.51}},
		"all discount":                           {adjustments: []v1alpha1.PriceAdjustment{{Name: "free", DiscountPercent: "100", Requirements: []v1alpha1.OfferingRequirement{in(capacityType, "spot")}}}, want: map[string]float64{"m6i.large/a/spot": 0, "c6i.large/a/spot": 0}},
		"another currency, in which surcharges are": {
			conversion: &v1alpha1.CurrencyConversion{Currency: "EUR", Rate: "0.9"}, adjustments: []v1alpha1.PriceAdjustment{surcharge("0.05", in(capacityType, "spot"))},
			want: map[string]float64{"m6i.large/a/on-demand": 0.9, "m6i.large/b/on-demand": 0.9, "m6i.large/a/spot": 0.5, "c6i.large/a/on-demand": 0.9, "c6i.large/b/on-demand": 0.9, "c6i.large/a/spot": 0.5, "c6i.large/reserved": 9e-8}},

		"nothing matches": {adjustments: []v1alpha1.PriceAdjustment{discount(in(family, "r6i")), surcharge("1", in(corev1.LabelTopologyZone, "c"))},
			problems: "adjustment half: no offering meets its requirements\nadjustment more: no offering meets its requirements"},
		"interruptions without spot": {adjustments: []v1alpha1.PriceAdjustment{{Name: "i", Interruption: interruption.Interruption, Requirements: []v1alpha1.OfferingRequirement{in(capacityType, "on-demand")}}},
			problems: "adjustment i: no spot offering meets its requirements"},
		// The API server refuses these, but a file that the plugin reads can have them. The others apply.
		"mistakes": {adjustments: []v1alpha1.PriceAdjustment{
			{Name: "a", DiscountPercent: "101"}, {Name: "b", DiscountPercent: "much"}, {Name: "c", SurchargePerHour: "-1"}, {Name: "d", DiscountPercent: "5", Requirements: []v1alpha1.OfferingRequirement{in(family)}},
			{Name: "e", Interruption: &v1alpha1.PriceOfInterruption{PercentPerMonth: "-5", CostHours: 1}}, discount(in(capacityType, "reserved")),
		}, want: map[string]float64{"c6i.large/reserved": 5e-8}, problems: "adjustment a: discountPercent \"101\" is not a decimal number from 0 to 100\n" +
			"adjustment b: discountPercent \"much\" is not a decimal number from 0 to 100\nadjustment c: surchargePerHour: price \"-1\" is not a decimal number of at least 0\n" +
			"adjustment d: requirement for " + family + ": values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty\n" +
			"adjustment e: interruption.percentPerMonth \"-5\" is not a decimal number from 0 to 100"},
	} {
		t.Run(name, func(t *testing.T) {
			c := adjustable(&v1alpha1.CatalogPricing{Conversion: tc.conversion, Adjustments: tc.adjustments})
			types, problems := TypesOf(template("types"), nil, c)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			got, lists := map[string]float64{}, map[string]float64{}
			built, _ := Build(template("types"), types)
			for i := range types {
				for j := range types[i].Offerings {
					o := &types[i].Offerings[j]
					key := types[i].KeyOf(o).String()
					got[key], lists[key] = built[i].Offerings[j].Price, o.ListPrice
					if want := lo.FromPtrOr(tc.conversion, v1alpha1.CurrencyConversion{Currency: "USD"}).Currency; o.Currency != want {
						t.Errorf("%s has a price in %q, want %s", key, o.Currency, want)
					}
				}
			}
			if diff := cmp.Diff(merged(unchanged, tc.want), got); diff != "" {
				t.Errorf("prices that Karpenter compares (-want +got):\n%s", diff)
			}
			if tc.conversion == nil {
				if diff := cmp.Diff(unchanged, lists); diff != "" {
					t.Errorf("list prices (-want +got):\n%s", diff)
				}
			}
			if diff := cmp.Diff(tc.problems, message(Check(&c.Spec).Adjustments)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func message(errs []error) string {
	if len(errs) == 0 {
		return ""
	}
	return errors.Join(errs...).Error()
}

// A conversion that cannot be used makes the catalog unusable: its prices would be those of another currency.
func TestConversionsThatCannotBeUsed(t *testing.T) {
	for rate, want := range map[v1alpha1.Decimal]string{"0": "expected a number of more than 0", "much": `price "much" is not a decimal number`} {
		c := adjustable(&v1alpha1.CatalogPricing{Conversion: &v1alpha1.CurrencyConversion{Currency: "EUR", Rate: rate}, Adjustments: []v1alpha1.PriceAdjustment{discount()}})
		checked := Check(&c.Spec)
		if checked.InstanceTypes != 0 || !strings.Contains(message(checked.Problems), want) || !strings.Contains(message(checked.Adjustments), want) {
			t.Errorf("a rate of %s: got %d instance types and %v, want %q", rate, checked.InstanceTypes, checked.Problems, want)
		}
	}
}

// Whatever the adjustments are, the price is a number of at least 0 that does not depend on their order. A discount never
// raises it, and neither a surcharge nor interruptions lower it.
func TestPropertiesOfAdjustments(t *testing.T) {
	property.Check(t, 1000, func(t *rapid.T) {
		decimal := func(most int, label string) string {
			return fmt.Sprintf("%d.%02d", rapid.IntRange(0, most).Draw(t, label), rapid.IntRange(0, 99).Draw(t, label+" cents"))
		}
		var adjustments []v1alpha1.PriceAdjustment
		cheaper, dearer := true, true
		for i := range rapid.IntRange(0, 6).Draw(t, "adjustments") {
			a := v1alpha1.PriceAdjustment{Name: fmt.Sprint("a", i)}
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				a.DiscountPercent, dearer = v1alpha1.Percent(decimal(99, "discount")), false
			case 1:
				a.SurchargePerHour, cheaper = v1alpha1.Decimal(decimal(5, "surcharge")), false
			default:
				a.Interruption, cheaper = &v1alpha1.PriceOfInterruption{PercentPerMonth: v1alpha1.Percent(decimal(99, "percent")), CostHours: rapid.Int32Range(1, 8760).Draw(t, "hours")}, false
			}
			adjustments = append(adjustments, a)
		}
		given := v1alpha1.Decimal(decimal(50, "price"))
		price := func(adjustments []v1alpha1.PriceAdjustment) (float64, float64) {
			spec := &v1alpha1.InstanceTypeCatalogSpec{Pricing: &v1alpha1.CatalogPricing{Adjustments: adjustments}, InstanceTypes: []v1alpha1.InstanceType{
				{Name: "x", Capacity: list("cpu", "1", "memory", "1Gi"), Offerings: []v1alpha1.Offering{zonal("spot", given)}},
			}}
			types, problems := Expand(spec)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			return types[0].Offerings[0].Price, types[0].Offerings[0].ListPrice
		}
		paid, list := price(adjustments)
		slices.Reverse(adjustments)
		reversed, _ := price(adjustments)
		switch epsilon := 1e-9 * (1 + math.Abs(paid)); {
		case math.IsNaN(paid) || math.IsInf(paid, 0) || paid < 0:
			t.Fatalf("the price is %v", paid)
		case math.Abs(paid-reversed) > epsilon:
			t.Fatalf("the price is %v, and %v in another order", paid, reversed)
		case cheaper && paid > list+epsilon, dearer && paid < list-epsilon:
			t.Fatalf("the price is %v of a list price of %v", paid, list)
		}
	})
}
