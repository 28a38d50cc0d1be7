// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// csvFormat is for infrastructure without a format of its own. The user writes what Nodes report,
// so there is no allowance.
var csvFormat = Format{
	Name: "csv",
	Help: `Write a CSV file whose first line names the columns. name, cpu and memory are required:
  name,cpu,memory,zones,price
  large,4,16Gi,rack-1;rack-2,0.12
A type can have several lines, one for each capacity type or price. Others are ephemeral-storage, pods, gpu (of NVIDIA), capacity-type,
max-machines, currency, architecture, region, category, family, generation, size, cpu-manufacturer, gpu-name, local-storage (GiB),
network-bandwidth (Mbit/s), label:KEY, capacity:RESOURCE and volumes:DRIVER. Without the column price, set --price-cpu and --price-memory.`,
	read: readCSV,
}

// csvLabels are the columns of labels, by the last part of their keys. That of the memory is the column memory.
var csvLabels = lo.SliceToMap(lo.Without(v1alpha1.SettableLabels, v1alpha1.InstanceMemoryLabel), func(key string) (string, string) {
	return strings.TrimPrefix(key, v1alpha1.Group+"/instance-"), key
})

func readCSV(files []File, options *Options) (*inventory, error) {
	in := &inventory{skipped: skips{}}
	optional := append([]string{"ephemeral-storage", "pods", "gpu", "zones", "capacity-type", "price", "max-machines", "currency", "architecture", "region", "label:", "capacity:", "volumes:"},
		slices.Sorted(maps.Keys(csvLabels))...)
	at := map[string]int{}
	for _, file := range files {
		if _, err := firstByte(file); err != nil {
			return nil, err
		}
		err := readTable(file, []string{"name", "cpu", "memory"}, optional, func(r row) error {
			m, err := in.machineOf(r, options)
			if err != nil {
				return err
			}
			first, known := at[m.name]
			if !known {
				at[m.name] = len(in.machines)
				in.machines = append(in.machines, *m)
				return nil
			}
			joined := &in.machines[first]
			if !joined.equal(m) {
				return fmt.Errorf("%s: %s has other values than at %s: expected lines of one type to differ only in zones, capacity-type, price and max-machines", r.where, m.name, joined.where)
			}
			joined.offers = append(joined.offers, m.offers...)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return in, nil
}

// equal reports whether two machines differ at most in their offers.
func (m *machine) equal(other *machine) bool {
	sameCapacity := maps.EqualFunc(m.capacity, other.capacity, func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 })
	return m.cpu.Cmp(other.cpu) == 0 && m.memory == other.memory && m.architecture == other.architecture && sameCapacity && maps.Equal(m.labels, other.labels) && maps.Equal(m.volumes, other.volumes)
}

// memoryUnit is what a quantity of memory ends in.
var memoryUnit = regexp.MustCompile(`[0-9]([KMGT]i|[kMGT])$`)

// machineOf returns the machine of a row.
func (in *inventory) machineOf(r row, options *Options) (*machine, error) {
	m := newMachine(r.where+" ("+r.values["name"]+")", r.values["name"])
	m.architecture = lo.CoalesceOrEmpty(r.values["architecture"], karpv1.ArchitectureAmd64)
	if m.architecture != karpv1.ArchitectureAmd64 && m.architecture != karpv1.ArchitectureArm64 {
		return nil, fmt.Errorf("%s: expected architecture amd64 or arm64, found %q", m.where, m.architecture)
	}
	m.spot = true
	var err error
	if m.cpu, err = quantity(m.where, "cpu", r.values["cpu"]); err != nil {
		return nil, err
	}
	for _, column := range slices.Sorted(maps.Keys(r.values)) {
		if value := r.values[column]; value != "" {
			if err := m.set(column, value); err != nil {
				return nil, err
			}
		}
	}
	m.label(corev1.LabelTopologyRegion, r.values["region"])
	return &m, in.addOffers(&m, r, options)
}

// set sets the capacity or label of a column.
func (m *machine) set(column, value string) error {
	prefix, name, _ := strings.Cut(column, ":")
	key, isLabel := csvLabels[column]
	var resourceName corev1.ResourceName
	switch {
	case isLabel:
		m.label(key, value)
		return nil
	case prefix == "label":
		m.labels[name] = value
		return nil
	case prefix == "volumes":
		return m.setVolumes(name, value)
	case column == "memory", column == "ephemeral-storage":
		if !memoryUnit.MatchString(value) {
			return fmt.Errorf("%s: expected %s with a unit, such as 16Gi, found %q", m.where, column, value)
		}
		resourceName = corev1.ResourceName(column)
	case column == "pods":
		resourceName = corev1.ResourcePods
	case column == "gpu":
		resourceName = nvidiaGPU
	case prefix == "capacity":
		resourceName = corev1.ResourceName(name)
	default:
		return nil
	}
	q, err := quantity(m.where, column, value)
	if err != nil {
		return err
	}
	if resourceName == corev1.ResourceMemory {
		m.memory = q.Value()
	} else if !q.IsZero() {
		m.capacity[resourceName] = q
	}
	return nil
}

// setVolumes sets how many volumes of a CSI driver can be attached.
func (m *machine) setVolumes(driver, value string) error {
	count, err := strconv.ParseInt(value, 10, 32)
	if err != nil || count < 0 {
		return fmt.Errorf("%s: expected volumes:%s as a number that is not negative, found %q", m.where, driver, value)
	}
	m.volumes[driver] = int32(count)
	return nil
}

func quantity(where, column, value string) (resource.Quantity, error) {
	q, err := resource.ParseQuantity(value)
	if err != nil || q.Sign() < 0 {
		return q, fmt.Errorf("%s: expected %s as a quantity that is not negative, such as 4 or 16Gi, found %q", where, column, value)
	}
	return q, nil
}

// addOffers adds the offers of a row: one for each zone.
func (in *inventory) addOffers(m *machine, r row, options *Options) error {
	o, err := in.offerOf(m.where, r, options)
	if err != nil {
		return err
	}
	zones := strings.FieldsFunc(r.values["zones"], func(c rune) bool { return c == ';' || c == ' ' || c == ',' })
	if len(zones) == 0 {
		zones = []string{""}
	}
	for _, zone := range zones {
		if zone == "" || matches(options.Zones, zone) {
			o.zone = zone
			m.offers = append(m.offers, o)
		}
	}
	return nil
}

// offerOf returns the offer of a row, without its zone.
func (in *inventory) offerOf(where string, r row, options *Options) (offer, error) {
	capacityType, err := in.readPriced(where, r)
	o := offer{capacityType: capacityType}
	if err != nil {
		return o, err
	}
	if text := r.values["price"]; text != "" {
		price, err := parsePrice(where, text)
		if err != nil {
			return o, err
		}
		o.price = &price
	} else if !options.computesPrices() {
		return o, fmt.Errorf("%s: expected a price: set the column price, or --price-cpu and --price-memory", where)
	}
	if text := r.values["max-machines"]; text != "" {
		limit, err := strconv.ParseInt(text, 10, 32)
		if err != nil || limit < 0 {
			return o, fmt.Errorf("%s: expected max-machines as a number that is not negative, found %q", where, text)
		}
		o.maxMachines = lo.ToPtr(int32(limit))
	}
	return o, nil
}
