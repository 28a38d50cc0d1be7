// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"github.com/samber/lo"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// PublishedDevices returns the devices that DRA drivers publish for one Node in its ResourceSlices, each as a group of its own, in
// the order of their pools and names. A pool of which slices are missing is left out, because its driver is about to publish them.
// It does not modify the slices.
func PublishedDevices(published []resourcev1.ResourceSlice) Devices {
	pools := map[pool][]*resourcev1.ResourceSlice{}
	for i := range published {
		spec := &published[i].Spec
		of := pool{spec.Driver, spec.Pool.Name}
		pools[of] = append(pools[of], &published[i])
	}
	keys := slices.SortedFunc(maps.Keys(pools), func(a, b pool) int { return cmp.Or(cmp.Compare(a.driver, b.driver), cmp.Compare(a.name, b.name)) })
	ofDriver := lo.CountValuesBy(keys, func(p pool) string { return p.driver })
	numbers := map[string]int{}
	var found Devices
	for _, of := range keys {
		name := ""
		if ofDriver[of.driver] > 1 {
			// The name of a pool usually has that of its Node.
			name = strconv.Itoa(numbers[of.driver])
			numbers[of.driver]++
		}
		found.addPool(of.driver, name, newest(pools[of]))
	}
	return found
}

// newest returns the slices of the last generation of a pool; none if some are missing.
func newest(published []*resourcev1.ResourceSlice) []*resourcev1.ResourceSlice {
	last := lo.MaxBy(published, func(a, b *resourcev1.ResourceSlice) bool { return a.Spec.Pool.Generation > b.Spec.Pool.Generation })
	current := lo.Filter(published, func(s *resourcev1.ResourceSlice, _ int) bool {
		return s.Spec.Pool.Generation == last.Spec.Pool.Generation
	})
	if int64(len(current)) != last.Spec.Pool.ResourceSliceCount {
		return nil
	}
	return current
}

func (d *Devices) addPool(driver, name string, published []*resourcev1.ResourceSlice) {
	var groups []v1alpha1.Device
	var counters []v1alpha1.DeviceCounters
	for _, slice := range published {
		for i := range slice.Spec.Devices {
			groups = append(groups, asGroup(driver, name, &slice.Spec.Devices[i]))
		}
		for _, set := range slice.Spec.SharedCounters {
			counters = append(counters, v1alpha1.DeviceCounters{Driver: driver, Pool: name, Name: set.Name, Counters: fromCounters(set.Counters)})
		}
	}
	slices.SortFunc(groups, func(a, b v1alpha1.Device) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(counters, func(a, b v1alpha1.DeviceCounters) int { return cmp.Compare(a.Name, b.Name) })
	for i := range groups {
		groups[i].Name = withoutNumber.ReplaceAllString(groups[i].Name, "")
		groups[i].Name = lo.Ternary(groups[i].Name == defaultDevice, "", groups[i].Name)
	}
	d.Groups, d.Counters = append(d.Groups, groups...), append(d.Counters, counters...)
}

// withoutNumber is the number at the end of a name, which each of several equal devices has.
var withoutNumber = regexp.MustCompile(`-*[0-9]+$`)

func asGroup(driver, pool string, device *resourcev1.Device) v1alpha1.Device {
	group := v1alpha1.Device{
		Driver: driver, Pool: pool, Name: device.Name,
		AllowMultipleAllocations: lo.FromPtr(device.AllowMultipleAllocations),
	}
	for name, a := range device.Attributes {
		// Lists, which are alpha, are left out.
		if value := (v1alpha1.DeviceAttribute{Int: a.IntValue, Bool: a.BoolValue, String: a.StringValue, Version: a.VersionValue}); value != (v1alpha1.DeviceAttribute{}) {
			set(&group.Attributes, string(name), value)
		}
	}
	for name, capacity := range device.Capacity {
		set(&group.Capacity, string(name), capacity.Value.DeepCopy())
		if capacity.RequestPolicy != nil {
			set(&group.RequestPolicies, string(name), fromPolicy(capacity.RequestPolicy.DeepCopy()))
		}
	}
	for _, consumed := range device.ConsumesCounters {
		group.ConsumesCounters = append(group.ConsumesCounters, v1alpha1.CounterConsumption{CounterSet: consumed.CounterSet, Counters: fromCounters(consumed.Counters)})
	}
	return group
}

// set sets an entry of a map, which it creates if necessary.
func set[V any](to *map[string]V, key string, value V) {
	if *to == nil {
		*to = map[string]V{}
	}
	(*to)[key] = value
}

func fromPolicy(published *resourcev1.CapacityRequestPolicy) v1alpha1.CapacityRequestPolicy {
	policy := v1alpha1.CapacityRequestPolicy{Default: published.Default, ValidValues: published.ValidValues}
	if r := published.ValidRange; r != nil {
		policy.ValidRange = &v1alpha1.CapacityRange{Min: r.Min, Max: r.Max, Step: r.Step}
	}
	return policy
}

func fromCounters(published map[string]resourcev1.Counter) map[string]resource.Quantity {
	return lo.MapValues(published, func(counter resourcev1.Counter, _ string) resource.Quantity { return counter.Value.DeepCopy() })
}

// text returns a value of the API as JSON, so that values can be compared.
func text(value any) string {
	return string(lo.Must(json.Marshal(value))) // such values can be encoded
}
