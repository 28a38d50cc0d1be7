// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/samber/lo"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// maxDevices is how many devices an instance type can have. Karpenter tries them one after the other for each Pod.
const maxDevices = 512

// checkDevices returns an error for devices that no driver can publish, or with which Karpenter could not plan.
func checkDevices(devices Devices) error {
	if count := lo.Sum(lo.Values(devices.Drivers())); count > maxDevices {
		return fmt.Errorf("devices: it has %d, and can have %d", count, maxDevices)
	}
	counters := map[named]*v1alpha1.DeviceCounters{}
	for i := range devices.Counters {
		set := &devices.Counters[i]
		of := named{poolOf(set.Driver, set.Pool), set.Name}
		if counters[of] != nil {
			return fmt.Errorf("deviceCounters: %s of %s is given twice", set.Name, set.Driver)
		}
		counters[of] = set
		if err := cmp.Or(checkDRADriver(set.Driver), checkQuantities("deviceCounters: counter", set.Counters)); err != nil {
			return err
		}
	}
	for i := range devices.Groups {
		g := &devices.Groups[i]
		if err := cmp.Or(checkDRADriver(g.Driver), checkAttributes(g), checkDeviceCapacity(g), checkConsumed(g, counters)); err != nil {
			return fmt.Errorf("devices[%d]: %w", i, err)
		}
	}
	return nil
}

func checkDRADriver(name string) error {
	if !isDriver(name) {
		return fmt.Errorf("expected %s, found %q", expectDRADriver, name)
	}
	return nil
}

// checkAttributes returns an error for attributes that no device can have. CEL expressions of claims fail at them.
func checkAttributes(g *v1alpha1.Device) error {
	for _, name := range slices.Sorted(maps.Keys(g.Attributes)) {
		a := g.Attributes[name]
		if !isQualified(name) {
			return fmt.Errorf("attributes: %s, found %q", expectQualified, name)
		}
		if given := lo.CountBy([]bool{a.Int != nil, a.Bool != nil, a.String != nil, a.Version != nil}, func(is bool) bool { return is }); given != 1 {
			return fmt.Errorf("attributes.%s: expected one of int, bool, string and version, found %d", name, given)
		}
		if a.Version != nil {
			if _, err := semver.Parse(*a.Version); err != nil {
				return fmt.Errorf("attributes.%s: expected a semantic version, such as 8.9.0, found %q", name, *a.Version)
			}
		}
	}
	values := sets.New(lo.Map(lo.Keys(g.Attributes), func(name string, _ int) resourcev1.QualifiedName { return qualified(name, g.Driver) })...)
	for _, name := range slices.Sorted(maps.Keys(g.SharedAttributes)) {
		switch {
		case !isQualified(name):
			return fmt.Errorf("sharedAttributes: %s, found %q", expectQualified, name)
		case values.Has(qualified(name, g.Driver)):
			return fmt.Errorf("sharedAttributes: attributes has the value of %s: leave out one of them", name)
		}
	}
	return nil
}

func checkDeviceCapacity(g *v1alpha1.Device) error {
	for _, name := range slices.Sorted(maps.Keys(g.Capacity)) {
		if !isQualified(name) {
			return fmt.Errorf("capacity: %s, found %q", expectQualified, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(g.RequestPolicies)) {
		policy := g.RequestPolicies[name]
		if _, has := g.Capacity[name]; !has {
			return fmt.Errorf("requestPolicies.%s: capacity has no %s", name, name)
		}
		if !g.AllowMultipleAllocations {
			return fmt.Errorf("requestPolicies.%s: set allowMultipleAllocations, too", name)
		}
		if len(policy.ValidValues) > 0 && policy.ValidRange != nil {
			return fmt.Errorf("requestPolicies.%s: set only one of validValues and validRange", name)
		}
		if (len(policy.ValidValues) > 0 || policy.ValidRange != nil) && policy.Default == nil {
			return fmt.Errorf("requestPolicies.%s: set default, too", name)
		}
		if !slices.IsSortedFunc(policy.ValidValues, func(a, b resource.Quantity) int { return a.Cmp(b) }) {
			return fmt.Errorf("requestPolicies.%s: validValues must be in ascending order", name)
		}
	}
	return checkQuantities("capacity", g.Capacity)
}

// checkConsumed returns an error for counters that do not exist. Karpenter would never allocate such a device.
func checkConsumed(g *v1alpha1.Device, counters map[named]*v1alpha1.DeviceCounters) error {
	for _, consumed := range g.ConsumesCounters {
		set := counters[named{poolOf(g.Driver, g.Pool), consumed.CounterSet}]
		if set == nil {
			return fmt.Errorf("consumesCounters: deviceCounters has no %s of driver %s and the same pool", consumed.CounterSet, g.Driver)
		}
		for _, name := range slices.Sorted(maps.Keys(consumed.Counters)) {
			if _, has := set.Counters[name]; !has {
				return fmt.Errorf("consumesCounters: counter set %s has no counter %s", consumed.CounterSet, name)
			}
		}
		if err := checkQuantities("consumesCounters: counter", consumed.Counters); err != nil {
			return err
		}
	}
	return nil
}

func checkQuantities(of string, quantities map[string]resource.Quantity) error {
	for _, name := range slices.Sorted(maps.Keys(quantities)) {
		if quantity := quantities[name]; quantity.Sign() < 0 {
			return fmt.Errorf("%s %s must not be less than 0, found %s", of, name, quantity.String())
		}
	}
	return nil
}

const expectQualified = "expected a name such as productName or example.com/model"

// isQualified reports whether a name can be that of an attribute or a capacity.
func isQualified(name string) bool {
	domain, id, has := strings.Cut(name, "/")
	if !has {
		domain, id = "", name
	}
	return len(id) <= resourcev1.DeviceMaxIDLength && len(validation.IsCIdentifier(id)) == 0 &&
		(!has || len(domain) <= resourcev1.DeviceMaxDomainLength && len(validation.IsDNS1123Subdomain(domain)) == 0)
}

// contents returns how many devices and counter sets there are of each kind. Names of devices do not count.
func (d Devices) contents() map[string]int32 {
	found := map[string]int32{}
	for _, g := range d.Groups {
		count := lo.FromPtrOr(g.Count, 1)
		g.Name, g.Count = "", nil
		found[text(g)] += count
	}
	for _, c := range d.Counters {
		count := lo.FromPtrOr(c.Count, 1)
		c.Count = nil
		found[text(c)] += count
	}
	return found
}

// Same reports whether devices are the same as others, in whatever groups and with whatever names.
func (d Devices) Same(others Devices) bool { return maps.Equal(d.contents(), others.contents()) }

// deviceDifferences returns where the devices of one type contradict those of another.
func deviceDifferences(one, other Devices, alike bool) []string {
	mine, theirs := one.Drivers(), other.Drivers()
	if !alike {
		theirs = lo.PickByKeys(theirs, lo.Keys(mine))
	}
	switch {
	case !maps.Equal(mine, theirs):
		return []string{fmt.Sprintf("devices: %s instead of %s", cmp.Or(one.String(), "none"), cmp.Or(other.String(), "none"))}
	case alike && !one.Same(other):
		return []string{"devices: other attributes, capacity or counters"}
	}
	return nil // one of them can describe the devices in less detail
}
