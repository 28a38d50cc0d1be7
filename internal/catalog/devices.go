// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unique"

	"github.com/samber/lo"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Devices are the devices of a machine in groups of equal ones, and the counters that partitions share.
type Devices struct {
	Groups   []v1alpha1.Device
	Counters []v1alpha1.DeviceCounters
}

// Empty reports whether there are no devices.
func (d Devices) Empty() bool { return len(d.Groups) == 0 }

// Drivers returns the number of devices of each driver.
func (d Devices) Drivers() map[string]int {
	drivers := map[string]int{}
	for i := range d.Groups {
		drivers[d.Groups[i].Driver] += int(lo.FromPtrOr(d.Groups[i].Count, 1))
	}
	return drivers
}

// String returns how many devices of each driver there are, for messages.
func (d Devices) String() string {
	return countsOf(d.Drivers())
}

// CountDevices returns how many devices of each driver an instance type has, for messages.
func CountDevices(resources cloudprovider.DynamicResources) string {
	drivers := map[string]int{}
	for _, slice := range resources.ResourceSliceTemplates {
		if len(slice.Devices) > 0 {
			drivers[slice.Driver.Value()] += len(slice.Devices)
		}
	}
	return countsOf(drivers)
}

func countsOf(drivers map[string]int) string {
	return strings.Join(lo.Map(slices.Sorted(maps.Keys(drivers)), func(driver string, _ int) string {
		return fmt.Sprintf("%d of %s", drivers[driver], driver)
	}), " and ")
}

// Without returns the devices of other drivers.
func (d Devices) Without(drivers sets.Set[string]) Devices {
	return Devices{
		Groups:   lo.Reject(d.Groups, func(g v1alpha1.Device, _ int) bool { return drivers.Has(g.Driver) }),
		Counters: lo.Reject(d.Counters, func(c v1alpha1.DeviceCounters, _ int) bool { return drivers.Has(c.Driver) }),
	}
}

// devicesOf returns the devices with which Karpenter plans a Node of a type. For each driver, what Nodes publish takes
// precedence.
func devicesOf(t *Type, observed v1alpha1.ObservedDevices) Devices {
	learned := Devices{observed.Devices, observed.DeviceCounters}
	declared := t.Devices.Without(sets.KeySet(learned.Drivers()))
	return Devices{slices.Concat(declared.Groups, learned.Groups), slices.Concat(declared.Counters, learned.Counters)}
}

// pool identifies a pool of devices.
type pool struct{ driver, name string }

// poolOf returns the pool of a driver. The name that the driver gives a pool has that of the Node, which is not known.
func poolOf(driver, name string) pool { return pool{driver, cmp.Or(name, driver)} }

// named identifies the devices, or the counter sets, with one name.
type named struct {
	pool
	name string
}

// dynamicResources returns the devices of an instance type in Karpenter's form: for each pool, a slice with its counters and one
// with its devices.
func dynamicResources(instanceType string, devices Devices) cloudprovider.DynamicResources {
	if devices.Empty() {
		return cloudprovider.DynamicResources{}
	}
	b := &deviceBuilder{instanceType: instanceType, sets: map[named]int32{}, slices: map[pool]*cloudprovider.ResourceSliceTemplate{}, numbers: map[named]int32{}, shared: map[sharedValue][]cloudprovider.DeviceID{}}
	for i := range devices.Counters {
		b.addCounters(&devices.Counters[i])
	}
	for i := range devices.Groups {
		b.addGroup(&devices.Groups[i])
	}
	b.addBindings()
	return b.result
}

// sharedValue is an attribute whose value devices share, with the text for the value.
type sharedValue struct {
	attribute resourcev1.QualifiedName
	text      v1alpha1.LabelValue
}

type deviceBuilder struct {
	instanceType string
	result       cloudprovider.DynamicResources
	// sets are how many counter sets have a name.
	sets map[named]int32
	// slices have the devices of each pool, and numbers how many of them have a name.
	slices  map[pool]*cloudprovider.ResourceSliceTemplate
	numbers map[named]int32
	shared  map[sharedValue][]cloudprovider.DeviceID
}

// newSlice adds a slice of a pool. No two instance types have a pool of the same name, because Karpenter remembers by driver, pool
// and name whether a device matches a claim (karpenter: pkg/scheduling/dynamicresources/allocator.go, matchKey).
func (b *deviceBuilder) newSlice(of pool) *cloudprovider.ResourceSliceTemplate {
	name := unique.Make(b.instanceType + "/" + of.name)
	slice := &cloudprovider.ResourceSliceTemplate{Driver: unique.Make(of.driver), Pool: cloudprovider.ResourcePool{Name: name}}
	b.result.ResourceSliceTemplates = append(b.result.ResourceSliceTemplates, slice)
	return slice
}

func (b *deviceBuilder) addCounters(c *v1alpha1.DeviceCounters) {
	of := poolOf(c.Driver, c.Pool)
	count := lo.FromPtrOr(c.Count, 1)
	b.sets[named{of, c.Name}] = count
	slice := b.newSlice(of)
	for i := range count {
		slice.SharedCounters = append(slice.SharedCounters, resourcev1.CounterSet{Name: numbered(c.Name, i), Counters: asCounters(c.Counters)})
	}
}

func (b *deviceBuilder) addGroup(g *v1alpha1.Device) {
	of := poolOf(g.Driver, g.Pool)
	if b.slices[of] == nil {
		b.slices[of] = b.newSlice(of)
	}
	slice := b.slices[of]
	attributes, capacity, name := asAttributes(g.Attributes), asCapacity(g), named{of, cmp.Or(g.Name, defaultDevice)}
	for i := range lo.FromPtrOr(g.Count, 1) {
		device := cloudprovider.Device{
			Name: unique.Make(numbered(name.name, b.numbers[name])), Attributes: attributes, Capacity: capacity,
			AllowMultipleAllocations: g.AllowMultipleAllocations,
		}
		b.numbers[name]++
		for _, consumed := range g.ConsumesCounters {
			device.ConsumesCounters = append(device.ConsumesCounters, resourcev1.DeviceCounterConsumption{
				CounterSet: numbered(consumed.CounterSet, i%max(1, b.sets[named{of, consumed.CounterSet}])), Counters: asCounters(consumed.Counters),
			})
		}
		slice.Devices = append(slice.Devices, device)
		for attribute, text := range g.SharedAttributes {
			value := sharedValue{qualified(attribute, g.Driver), text}
			b.shared[value] = append(b.shared[value], cloudprovider.DeviceID{Driver: slice.Driver, Pool: slice.Pool.Name, Device: device.Name})
		}
	}
}

// addBindings adds which devices share a value, in a fixed order.
func (b *deviceBuilder) addBindings() {
	values := slices.SortedFunc(maps.Keys(b.shared), func(one, other sharedValue) int {
		return cmp.Or(cmp.Compare(one.attribute, other.attribute), cmp.Compare(one.text, other.text))
	})
	for _, value := range values {
		b.result.AttributeBindings = append(b.result.AttributeBindings, &cloudprovider.AttributeBinding{Devices: b.shared[value], Attribute: value.attribute})
	}
}

// defaultDevice is the name of devices without one.
const defaultDevice = "device"

func numbered(name string, number int32) string { return fmt.Sprintf("%s-%d", name, number) }

// qualified returns the name of an attribute with its domain, which is that of the driver by default.
func qualified(attribute, driver string) resourcev1.QualifiedName {
	if strings.Contains(attribute, "/") {
		return resourcev1.QualifiedName(attribute)
	}
	return resourcev1.QualifiedName(driver + "/" + attribute)
}

func asAttributes(given map[string]v1alpha1.DeviceAttribute) map[resourcev1.QualifiedName]resourcev1.DeviceAttribute {
	return lo.MapEntries(given, func(name string, a v1alpha1.DeviceAttribute) (resourcev1.QualifiedName, resourcev1.DeviceAttribute) {
		return resourcev1.QualifiedName(name), resourcev1.DeviceAttribute{IntValue: a.Int, BoolValue: a.Bool, StringValue: a.String, VersionValue: a.Version}
	})
}

func asCapacity(g *v1alpha1.Device) map[resourcev1.QualifiedName]resourcev1.DeviceCapacity {
	return lo.MapEntries(g.Capacity, func(name string, value resource.Quantity) (resourcev1.QualifiedName, resourcev1.DeviceCapacity) {
		capacity := resourcev1.DeviceCapacity{Value: value}
		if policy, given := g.RequestPolicies[name]; given {
			capacity.RequestPolicy = asPolicy(policy)
		}
		return resourcev1.QualifiedName(name), capacity
	})
}

func asPolicy(given v1alpha1.CapacityRequestPolicy) *resourcev1.CapacityRequestPolicy {
	policy := &resourcev1.CapacityRequestPolicy{Default: given.Default, ValidValues: given.ValidValues}
	if r := given.ValidRange; r != nil {
		policy.ValidRange = &resourcev1.CapacityRequestPolicyRange{Min: r.Min, Max: r.Max, Step: r.Step}
	}
	return policy
}

func asCounters(given map[string]resource.Quantity) map[string]resourcev1.Counter {
	return lo.MapValues(given, func(value resource.Quantity, _ string) resourcev1.Counter { return resourcev1.Counter{Value: value} })
}
