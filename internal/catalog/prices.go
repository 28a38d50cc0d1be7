// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// prices computes the prices that a catalog does not set.
type prices struct {
	perCPU, perGiB, perGPU float64
	// computed reports whether types without a price get one from their capacity.
	computed bool
	factors  map[string]float64
}

// estimated are the prices of discovered objects without one, unless spec.discovery.pricing sets others.
// With them the smaller machine is the cheaper one, which is sufficient for Karpenter to choose
// among machines without prices.
var estimated = prices{perCPU: 0.03, perGiB: 0.004, perGPU: 0.5, computed: true}

// pricesOfDiscovered returns the prices of discovered objects without one.
func pricesOfDiscovered(pricing *v1alpha1.Pricing) (prices, error) {
	p, err := pricesOf(pricing)
	if !p.computed {
		p.perCPU, p.perGiB, p.perGPU, p.computed = estimated.perCPU, estimated.perGiB, estimated.perGPU, true
	}
	return p, err
}

func pricesOf(pricing *v1alpha1.Pricing) (prices, error) {
	if pricing == nil {
		return prices{}, nil
	}
	var errs []error
	parse := func(field string, text v1alpha1.Decimal) float64 {
		if text == "" {
			return 0
		}
		price, err := parsePrice(string(text))
		if err != nil {
			errs = append(errs, fmt.Errorf("pricing.%s: %w", field, err))
		}
		return price
	}
	p := prices{perCPU: parse("cpu", pricing.CPU), perGiB: parse("memory", pricing.Memory), perGPU: parse("gpu", pricing.GPU), factors: map[string]float64{}}
	p.computed = pricing.CPU != "" || pricing.Memory != "" || pricing.GPU != ""
	for _, f := range pricing.Factors {
		p.factors[string(f.CapacityType)] = parse(fmt.Sprintf("factors[%s].factor", f.CapacityType), f.Factor)
	}
	return p, errors.Join(errs...)
}

// of returns the price of an offering of an instance type.
func (p prices) of(instanceType *v1alpha1.InstanceType, offering *v1alpha1.Offering, capacityType string) (float64, error) {
	switch {
	case offering.Price != "":
		return parsePrice(string(offering.Price))
	case instanceType.Price != "":
		price, err := parsePrice(string(instanceType.Price))
		return price * p.factor(capacityType), err
	case p.computed:
		return p.estimate(corev1.ResourceList(instanceType.Capacity)) * p.factor(capacityType), nil
	default:
		return 0, errors.New("it has no price: set price here or for the instance type, or pricing for all instance types of the catalog")
	}
}

// reservedFactor makes a reservation, which is paid for already, cheaper than anything else, and keeps the order of
// instance types: Karpenter replaces a Node only if that lowers the price (karpenter: pkg/controllers/disruption/consolidation.go).
const reservedFactor = 1e-7

func (p prices) factor(capacityType string) float64 {
	if factor, given := p.factors[capacityType]; given {
		return factor
	}
	if capacityType == karpv1.CapacityTypeReserved {
		return reservedFactor
	}
	return 1
}

// estimate returns a price that follows from the capacity.
func (p prices) estimate(capacity corev1.ResourceList) float64 {
	return p.perCPU*capacity.Cpu().AsApproximateFloat64() +
		p.perGiB*capacity.Memory().AsApproximateFloat64()/gibibyte +
		p.perGPU*float64(gpus(capacity))
}

func parsePrice(text string) (float64, error) {
	price, err := strconv.ParseFloat(text, 64)
	if err != nil || price < 0 || math.IsInf(price, 0) || math.IsNaN(price) {
		return 0, fmt.Errorf("price %q is not a decimal number of at least 0", text)
	}
	return price, nil
}
