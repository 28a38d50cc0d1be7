// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/samber/lo"
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
	// perWatt is the price of one watt for one hour.
	perWatt float64
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

// pricesOfCatalog returns the prices that a catalog computes.
func pricesOfCatalog(pricing *v1alpha1.CatalogPricing) (prices, error) {
	if pricing == nil {
		return prices{}, nil
	}
	p, err := pricesOf(&pricing.Pricing)
	if pricing.Power == nil {
		return p, err
	}
	read := decimals{}
	p.perWatt = read.decimal("pricing.power.kilowattHour", pricing.Power.KilowattHour, 0) * read.decimal("pricing.power.factor", pricing.Power.Factor, 1) / 1000
	return p, errors.Join(err, read.err())
}

func pricesOf(pricing *v1alpha1.Pricing) (prices, error) {
	if pricing == nil {
		return prices{}, nil
	}
	read := decimals{}
	p := prices{
		perCPU: read.decimal("pricing.cpu", pricing.CPU, 0), perGiB: read.decimal("pricing.memory", pricing.Memory, 0), perGPU: read.decimal("pricing.gpu", pricing.GPU, 0),
		factors: map[string]float64{},
	}
	p.computed = pricing.CPU != "" || pricing.Memory != "" || pricing.GPU != ""
	for _, f := range pricing.Factors {
		p.factors[string(f.CapacityType)] = read.decimal(fmt.Sprintf("pricing.factors[%s].factor", f.CapacityType), f.Factor, 0)
	}
	return p, read.err()
}

// decimals reads the numbers of fields, and keeps what is wrong with them.
type decimals struct{ errs []error }

// decimal returns the number in a field, or its default if it is not set.
func (d *decimals) decimal(field string, text v1alpha1.Decimal, unset float64) float64 {
	if text == "" {
		return unset
	}
	number, err := parsePrice(string(text))
	if err != nil {
		d.errs = append(d.errs, fmt.Errorf("%s: %w", field, err))
	}
	return number
}

func (d *decimals) err() error { return errors.Join(d.errs...) }

// of returns the price of an offering of an instance type.
func (p prices) of(instanceType *v1alpha1.InstanceType, offering *v1alpha1.Offering, capacityType string) (float64, error) {
	switch {
	case offering.Price != "":
		return parsePrice(string(offering.Price))
	case instanceType.Price != "":
		price, err := parsePrice(string(instanceType.Price))
		return price * p.factor(capacityType), err
	case instanceType.Hardware != nil:
		price, err := p.ofHardware(instanceType.Hardware)
		return price * p.factor(capacityType), err
	case p.computed:
		return p.estimate(corev1.ResourceList(instanceType.Capacity)) * p.factor(capacityType), nil
	default:
		return 0, errors.New("it has no price: set price here or for the instance type, or pricing for all instance types of the catalog")
	}
}

// hoursPerMonth are the hours for which clouds bill in a month.
const hoursPerMonth = 730

// ofHardware returns the price of a machine that was bought: its power, and its share of the purchase price.
func (p prices) ofHardware(hardware *v1alpha1.Hardware) (float64, error) {
	read := decimals{}
	months := lo.FromPtrOr(hardware.DepreciationMonths, v1alpha1.DefaultDepreciationMonths)
	price := float64(lo.FromPtr(hardware.Watts))*p.perWatt + read.decimal("hardware.purchasePrice", hardware.PurchasePrice, 0)/(float64(months)*hoursPerMonth)
	if price == 0 && len(read.errs) == 0 {
		return 0, errors.New("its hardware costs nothing: set hardware.purchasePrice, or hardware.watts and pricing.power of the catalog")
	}
	return price, read.err()
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
