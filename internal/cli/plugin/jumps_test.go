// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"math"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// A catalog whose prices change too much is not applied, whether they rise or fall.
func TestRefuseJumps(t *testing.T) {
	for name, tc := range map[string]struct {
		price, priceNow string
		factor          float64
		problem         string
	}{
		"no limit":            {price: "0.1", priceNow: "9"},
		"the same price":      {price: "0.1", priceNow: "0.1", factor: 2},
		"just within":         {price: "0.1", priceNow: "0.2", factor: 2},
		"a higher one":        {price: "0.1", priceNow: "0.21", factor: 2, problem: "InstanceTypeCatalog x: 1 prices change by more than the factor 2, such as m1 on-demand a: 0.1 → 0.21."},
		"a lower one":         {price: "0.1", priceNow: "0.04", factor: 2, problem: "m1 on-demand a: 0.1 → 0.04"},
		"nothing any more":    {price: "0.1", priceNow: "0", factor: 1000, problem: "m1 on-demand a: 0.1 → 0"},
		"no longer for free":  {price: "0", priceNow: "0.1", factor: 1000, problem: "m1 on-demand a: 0 → 0.1"},
		"a factor of 1":       {price: "0.1", priceNow: "0.1", factor: 1, problem: "--max-price-factor: expected a number of more than 1"},
		"a negative factor":   {price: "0.1", priceNow: "0.1", factor: -2, problem: "--max-price-factor"},
		"a factor of nothing": {price: "0.1", priceNow: "0.1", factor: math.NaN(), problem: "--max-price-factor"},
	} {
		t.Run(name, func(t *testing.T) {
			before, now := reads(strings.Replace(stored, "0.1", tc.price, 1)), reads(strings.Replace(stored, "0.1", tc.priceNow, 1))
			existing, err := before.read()
			if err != nil {
				t.Fatal(err)
			}
			given, err := now.read()
			if err != nil {
				t.Fatal(err)
			}
			err = refuseJumps(t.Context(), fake.NewClientBuilder().WithScheme(scheme()).WithObjects(existing).Build(), given, tc.factor)
			if tc.problem == "" && err != nil || tc.problem != "" && (err == nil || !strings.Contains(err.Error(), tc.problem)) {
				t.Errorf("got %v, want %q", err, tc.problem)
			}
		})
	}
	// Adjustments neither hide a jump, nor are one because the file does not have them.
	adjusted := strings.Replace(stored, "spec:", `spec:
  pricing:
    conversion: {currency: EUR, rate: "0.2"}
    adjustments: [{name: licenses, surchargePerHour: "5"}]`, 1)
	for price, want := range map[string]bool{"0.1": true, "0.9": false} {
		before, now := reads(adjusted), reads(strings.Replace(stored, "0.1", price, 1))
		existing, err := before.read()
		if err != nil {
			t.Fatal(err)
		}
		given, err := now.read()
		if err != nil {
			t.Fatal(err)
		}
		if err := refuseJumps(t.Context(), fake.NewClientBuilder().WithScheme(scheme()).WithObjects(existing).Build(), given, 2); (err == nil) != want {
			t.Errorf("a price of %s in a catalog with adjustments: got %v, want it to be applied: %t", price, err, want)
		}
	}

	o := reads(stored)
	given, err := o.read()
	if err != nil {
		t.Fatal(err)
	}
	if err := refuseJumps(t.Context(), fake.NewClientBuilder().WithScheme(scheme()).Build(), given, 2); err != nil {
		t.Errorf("a catalog that is new: got %v", err)
	}
}
