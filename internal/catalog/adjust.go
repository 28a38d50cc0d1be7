// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// adjuster computes what is paid for the offerings of a catalog from their list prices:
//
//	price = list price × rate × product of factors + sum of surcharges
//
// Factors and surcharges are those of all adjustments that select the offering, so their order does not matter. The list
// price is converted first, so that both prices of an offering are in the same currency.
type adjuster struct {
	currency string
	rate     float64
	// adjustments are those that can be used, and problems are why others cannot.
	adjustments []*adjustment
	problems    []error
}

// adjustment is one adjustment of a catalog.
type adjustment struct {
	name string
	// ofType and ofOffering select instance types and their offerings by the labels that each has.
	ofType, ofOffering labels.Selector
	// factor is for all offerings, and spotFactor is for those of capacity type spot in addition.
	factor, spotFactor, surcharge float64
	// spotOnly reports whether it changes the prices of spot offerings only.
	spotOnly bool
	// used reports whether it has applied to an offering.
	used bool
}

// unused returns which adjustments have applied to no offering, and why.
func (a *adjuster) unused() []error {
	problems := a.problems
	for _, given := range a.adjustments {
		if !given.used {
			problems = append(problems, fmt.Errorf("adjustment %s: no %soffering meets its requirements", given.name, lo.Ternary(given.spotOnly, "spot ", "")))
		}
	}
	return problems
}

// adjusterOf returns the adjuster of a catalog. An adjustment that cannot be used costs the others nothing.
func adjusterOf(spec *v1alpha1.InstanceTypeCatalogSpec) (*adjuster, error) {
	a := &adjuster{currency: spec.Currency, rate: 1}
	pricing := lo.FromPtr(spec.Pricing)
	if c := pricing.Conversion; c != nil {
		rate, err := parsePrice(string(c.Rate))
		if err != nil || rate == 0 {
			return nil, cmp.Or(err, errors.New("pricing.conversion.rate: expected a number of more than 0"))
		}
		a.currency, a.rate = c.Currency, rate
	}
	for i := range pricing.Adjustments {
		given := &pricing.Adjustments[i]
		usable, err := adjustmentOf(given)
		if err != nil {
			a.problems = append(a.problems, fmt.Errorf("adjustment %s: %w", given.Name, err))
			continue
		}
		a.adjustments = append(a.adjustments, usable)
	}
	return a, nil
}

// ofOfferings are the labels that Nodes have because of their offering.
var ofOfferings = []string{corev1.LabelTopologyZone, karpv1.CapacityTypeLabelKey, v1alpha1.ReservationIDLabel}

func adjustmentOf(given *v1alpha1.PriceAdjustment) (*adjustment, error) {
	a := &adjustment{
		name: given.Name, ofType: labels.NewSelector(), ofOffering: labels.NewSelector(), factor: 1, spotFactor: 1,
		spotOnly: given.DiscountPercent == "" && given.SurchargePerHour == "",
	}
	for _, r := range given.Requirements {
		values := lo.Map(r.Values, func(value v1alpha1.LabelValue, _ int) string { return string(value) })
		requirement, err := labels.NewRequirement(r.Key, operators[r.Operator], values)
		switch {
		case err != nil:
			return nil, fmt.Errorf("requirement for %s: %w", r.Key, err)
		case lo.Contains(ofOfferings, r.Key):
			a.ofOffering = a.ofOffering.Add(*requirement)
		default:
			a.ofType = a.ofType.Add(*requirement)
		}
	}
	discount, err := fraction("discountPercent", given.DiscountPercent)
	if err != nil {
		return nil, err
	}
	a.factor = 1 - discount
	if given.SurchargePerHour != "" {
		if a.surcharge, err = parsePrice(string(given.SurchargePerHour)); err != nil {
			return nil, fmt.Errorf("surchargePerHour: %w", err)
		}
	}
	if i := given.Interruption; i != nil {
		interrupted, err := fraction("interruption.percentPerMonth", i.PercentPerMonth)
		if err != nil {
			return nil, err
		}
		a.spotFactor = 1 + interrupted*float64(i.CostHours)/hoursPerMonth
	}
	return a, nil
}

var operators = map[v1alpha1.RequirementOperator]selection.Operator{
	v1alpha1.RequirementIn:           selection.In,
	v1alpha1.RequirementNotIn:        selection.NotIn,
	v1alpha1.RequirementExists:       selection.Exists,
	v1alpha1.RequirementDoesNotExist: selection.DoesNotExist,
}

// fraction returns a percentage as a number from 0 to 1.
func fraction(field string, percent v1alpha1.Percent) (float64, error) {
	if percent == "" {
		return 0, nil
	}
	number, err := parsePrice(string(percent))
	if err != nil || number > 100 {
		return 0, fmt.Errorf("%s %q is not a decimal number from 0 to 100", field, percent)
	}
	return number / 100, nil
}

// adjust sets the prices of an instance type's offerings, which have their list prices in the currency of the catalog.
func (a *adjuster) adjust(t *Type) {
	matching := a.matching(t)
	for i := range t.Offerings {
		o := &t.Offerings[i]
		if a.rate != 1 {
			o.Price = rounded(o.Price * a.rate)
		}
		o.ListPrice, o.Currency = o.Price, a.currency
		if selecting := selected(matching, o); len(selecting) > 0 {
			o.Price = rounded(adjusted(o.ListPrice, o.CapacityType, selecting))
		}
	}
}

// matching returns the adjustments that can select an offering of an instance type.
func (a *adjuster) matching(t *Type) []*adjustment {
	if len(a.adjustments) == 0 {
		return nil
	}
	given := labels.Set(t.NodeLabels())
	given[corev1.LabelInstanceTypeStable] = t.Name
	return lo.Filter(a.adjustments, func(a *adjustment, _ int) bool { return a.ofType.Matches(given) })
}

// selected returns those of the adjustments that select an offering, and marks them as used.
func selected(adjustments []*adjustment, o *Offering) []*adjustment {
	if len(adjustments) == 0 {
		return nil
	}
	given := labels.Set(lo.OmitByValues(map[string]string{
		corev1.LabelTopologyZone: o.Zone, karpv1.CapacityTypeLabelKey: o.CapacityType, v1alpha1.ReservationIDLabel: lo.FromPtr(o.Reservation).ID,
	}, []string{""}))
	return lo.Filter(adjustments, func(a *adjustment, _ int) bool {
		selects := a.ofOffering.Matches(given) && (!a.spotOnly || o.CapacityType == karpv1.CapacityTypeSpot)
		a.used = a.used || selects
		return selects
	})
}

// adjusted returns what is paid for an offering, given its list price and the adjustments that select it.
func adjusted(list float64, capacityType string, adjustments []*adjustment) float64 {
	factor, surcharge := 1.0, 0.0
	for _, a := range adjustments {
		factor *= a.factor
		if capacityType == karpv1.CapacityTypeSpot {
			factor *= a.spotFactor
		}
		surcharge += a.surcharge
	}
	return list*factor + surcharge
}

// rounded removes the errors of floating point numbers, so that 0.1 × 0.7 is 0.07. Prices that are next to nothing, such as
// those of reservations, keep their order.
func rounded(price float64) float64 {
	result, _ := strconv.ParseFloat(strconv.FormatFloat(price, 'g', 12, 64), 64) // it was formatted by FormatFloat
	return result
}
