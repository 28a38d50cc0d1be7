// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"strings"
	"testing"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// With adjustments, commands show what is paid and the list prices, in the currency of the conversion.
func TestPricesAsPeoplePayThem(t *testing.T) {
	adjust := named("types", func(c *v1alpha1.InstanceTypeCatalog) {
		c.Spec.Currency = "USD"
		c.Spec.Pricing = &v1alpha1.CatalogPricing{
			Conversion: &v1alpha1.CurrencyConversion{Currency: "EUR", Rate: "0.9"},
			Adjustments: []v1alpha1.PriceAdjustment{
				{Name: "licenses", SurchargePerHour: "0.01"},
				{Name: "savings-plan", DiscountPercent: "30", Requirements: []v1alpha1.OfferingRequirement{
					{Key: "karpenter.sh/capacity-type", Operator: v1alpha1.RequirementIn, Values: []v1alpha1.LabelValue{"on-demand"}},
				}},
			},
		}
	})
	for _, command := range []string{"offerings general", "offerings general -o json", "cost", "cost general -o yaml"} {
		t.Run(command, func(t *testing.T) {
			got, messages, code := runIn(t, world(t, adjust), strings.Fields(command)...)
			if code != 0 {
				t.Fatalf("exit code %d: %s", code, messages)
			}
			compareGolden(t, command+" --adjusted", got)
		})
	}
}

// With spec.spread, offerings that cost about the same cost the same for Karpenter, which has a column of its own.
func TestOfferingsThatTakeTurns(t *testing.T) {
	dearer := named("types", func(c *v1alpha1.InstanceTypeCatalog) {
		large := &c.Spec.InstanceTypes[0]
		large.Offerings[1].Zones = []v1alpha1.Zone{"us-east-1a"}
		large.Offerings = append(large.Offerings, v1alpha1.Offering{Zones: []v1alpha1.Zone{"us-east-1b"}, CapacityType: "on-demand", Price: "0.1"})
	})
	spread := named("general", func(template *v1alpha1.KarpenterMachineTemplate) {
		template.Spec.Spread = []v1alpha1.Spread{{CapacityType: "on-demand", MaxPriceIncreasePercent: new(int32(20))}}
	})
	got, messages, code := runIn(t, world(t, dearer, spread), "offerings", "general")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, messages)
	}
	compareGolden(t, "offerings general --spread", got)
}

// Several currencies are a mistake that the user sees, because Karpenter compares the numbers.
func TestSeveralCurrencies(t *testing.T) {
	var out strings.Builder
	for currency, want := range map[string]string{
		"":         "",
		"EUR":      "\nPrices are in EUR.\n",
		"EUR, USD": "\nPrices are in several currencies (EUR, USD), which are compared as if they were one: set pricing.conversion in catalogs.\n",
	} {
		out.Reset()
		if err := printCurrency(&out, currency); err != nil || out.String() != want {
			t.Errorf("%q: got %q and %v, want %q", currency, out.String(), err, want)
		}
	}
}
