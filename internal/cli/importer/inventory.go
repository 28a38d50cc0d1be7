// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/shopspring/decimal"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

const (
	mebibyte = 1 << 20
	gibibyte = 1 << 30
	gigabyte = 1_000_000_000
)

// Resources of accelerators, as their device plugins name them.
const (
	nvidiaGPU = corev1.ResourceName("nvidia.com/gpu")
	amdGPU    = corev1.ResourceName("amd.com/gpu")
	gaudi     = corev1.ResourceName("habana.ai/gaudi")
	neuron    = corev1.ResourceName("aws.amazon.com/neuron")
	tpu       = corev1.ResourceName("google.com/tpu")
)

// inventory is what files describe, in common terms.
type inventory struct {
	// region is empty if the infrastructure has none.
	region string
	// date of the data, such as 2026-11-20; empty if the files have none.
	date string
	// currency of the prices; empty if the files do not have it.
	currency string
	machines []machine
	skipped  skips
}

// machine is a type of machine.
type machine struct {
	// where describes it in errors: the file, the element and the name.
	where        string
	name         string
	architecture string
	cpu          resource.Quantity
	// memory in bytes, as it is sold.
	memory int64
	// capacity is that of other resources.
	capacity corev1.ResourceList
	labels   map[string]string
	// volumes are how many volumes of each CSI driver can be attached, by the name of the driver.
	volumes map[string]int32
	offers  []offer
	// spot reports whether the type can be bought as spot.
	spot bool
}

// offer is one way to buy a machine in one zone.
type offer struct {
	zone, capacityType string
	// price is nil if no file has it.
	price       *decimal.Decimal
	maxMachines *int32
}

func newMachine(where, name string) machine {
	return machine{where: where, name: name, capacity: corev1.ResourceList{}, labels: map[string]string{}, volumes: map[string]int32{}}
}

func (m *machine) family() string { return m.labels[v1alpha1.InstanceFamilyLabel] }
func (m *machine) size() string   { return m.labels[v1alpha1.InstanceSizeLabel] }

// label sets a label, unless the value is empty or 0.
func (m *machine) label(key, value string) {
	if value != "" && value != "0" {
		m.labels[key] = value
	}
}

// count adds to how many of a resource the machine has, unless that is 0.
func (m *machine) count(name corev1.ResourceName, count int64) {
	if count != 0 {
		sum := m.capacity[name]
		sum.Add(*resource.NewQuantity(count, resource.DecimalSI))
		m.capacity[name] = sum
	}
}

// attachable sets how many volumes of a CSI driver can be attached, at least 1: so many can be attached to any machine.
func (m *machine) attachable(driver string, count int64) {
	m.volumes[driver] = int32(min(max(count, 1), math.MaxInt32))
}

// gpus adds GPUs to the machine, and sets their model.
func (m *machine) gpus(name corev1.ResourceName, count int64, model string) {
	m.count(name, count)
	if count > 0 {
		m.label(v1alpha1.InstanceGPUNameLabel, strings.ReplaceAll(strings.ToLower(strings.TrimSpace(model)), " ", "-"))
	}
}

// offered reports whether the machine has an offer.
func (m *machine) offered(zone, capacityType string) bool {
	return slices.ContainsFunc(m.offers, func(o offer) bool { return o.zone == zone && o.capacityType == capacityType })
}

// The most that a machine can have; more is an error in the data, such as another unit.
const (
	maxCPUs   = 10_000
	maxMemory = 1024 * 1024 * gibibyte
)

// check returns an error for a machine that cannot exist.
func (m *machine) check() error {
	if m.cpu.Sign() <= 0 || m.cpu.CmpInt64(maxCPUs) > 0 {
		return fmt.Errorf("%s: expected 1 to %d CPUs, found %s", m.where, maxCPUs, m.cpu.String())
	}
	if m.memory < mebibyte || m.memory > maxMemory {
		return fmt.Errorf("%s: expected memory of 1 MiB to 1 PiB, found %d bytes", m.where, m.memory)
	}
	for name, quantity := range m.capacity {
		if quantity.Sign() < 0 {
			return fmt.Errorf("%s: %s is negative: %s", m.where, name, quantity.String())
		}
	}
	return m.checkOffers()
}

// maxSpotRatio is how many times the on-demand price a spot price can be.
var maxSpotRatio = decimal.NewFromInt(10)

func (m *machine) checkOffers() error {
	onDemand := map[string]*decimal.Decimal{}
	seen := map[[2]string]bool{}
	for _, o := range m.offers {
		if (o.zone == "") != (m.offers[0].zone == "") {
			return fmt.Errorf("%s: some offers have zones, and others have none: name the zones of all, or of none", m.where)
		}
		key := [2]string{o.zone, o.capacityType}
		if seen[key] {
			return fmt.Errorf("%s: zone %q is given twice for %s", m.where, o.zone, o.capacityType)
		}
		seen[key] = true
		if o.capacityType == karpv1.CapacityTypeOnDemand {
			onDemand[o.zone] = o.price
		}
	}
	for _, o := range m.offers {
		usual := onDemand[o.zone]
		if o.capacityType == karpv1.CapacityTypeSpot && o.price != nil && usual != nil && usual.IsPositive() &&
			o.price.GreaterThan(usual.Mul(maxSpotRatio)) {
			return fmt.Errorf("%s: the spot price %s in zone %q is more than %s times the on-demand price %s: expected prices of one machine for one hour",
				m.where, o.price, o.zone, maxSpotRatio, usual)
		}
	}
	return nil
}

// setCurrency sets the currency, which must be the same for all prices.
func (i *inventory) setCurrency(where, code string) error {
	if i.currency != "" && i.currency == code {
		return nil
	}
	if err := checkCurrency(where, code); err != nil {
		return err
	}
	if i.currency != "" {
		return fmt.Errorf("%s: price in %s, but others are in %s: expected one currency", where, code, i.currency)
	}
	i.currency = code
	return nil
}

// setDate sets the date of the data to a time such as 2026-11-20T18:00:00Z, if it is later.
func (i *inventory) setDate(text string) {
	if day, _, _ := strings.Cut(text, "T"); day > i.date {
		i.date = day
	}
}

// readPriced returns the capacity type of a row of a CSV file with a price, and sets the currency if the
// row has one.
func (i *inventory) readPriced(where string, r row) (string, error) {
	capacityType := cmp.Or(r.values["capacity-type"], karpv1.CapacityTypeOnDemand)
	if capacityType != karpv1.CapacityTypeOnDemand && capacityType != karpv1.CapacityTypeSpot {
		return "", fmt.Errorf("%s: expected capacity-type on-demand or spot, found %q", where, capacityType)
	}
	if code := r.values["currency"]; code != "" {
		return capacityType, i.setCurrency(where, code)
	}
	return capacityType, nil
}

// times returns a count in a unit, such as in bytes; the greatest or the least number if that cannot
// be represented, which check rejects.
func times(count, unit int64) int64 {
	return whole(decimal.NewFromInt(count).Mul(decimal.NewFromInt(unit)))
}

// whole returns the integer part of a number; the greatest or the least integer if that cannot be
// represented.
func whole(number decimal.Decimal) int64 {
	return decimal.Min(decimal.Max(number, decimal.NewFromInt(math.MinInt64)), decimal.NewFromInt(math.MaxInt64)).IntPart()
}
