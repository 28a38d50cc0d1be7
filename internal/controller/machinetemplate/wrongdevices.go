// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"fmt"
	"maps"
	"slices"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
)

// wrongDevices returns a text for the declared devices of each type that Nodes do not have.
func wrongDevices(observed []v1alpha1.ObservedDevices, types map[string]*catalog.Type) []string {
	var texts []string
	for _, o := range observed {
		t := types[o.InstanceType]
		if t == nil || o.Nodes == 0 {
			continue
		}
		found := observedDevices(o)
		counts, declared := found.Drivers(), t.Devices.Drivers()
		for _, driver := range slices.Sorted(maps.Keys(counts)) {
			expected, is := declared[driver]
			switch {
			case !is: // what is not declared cannot be wrong
			case expected != counts[driver]:
				texts = append(texts, fmt.Sprintf("devices of %s of %s: declared %d, observed %d", driver, o.InstanceType, expected, counts[driver]))
			default:
				texts = append(texts, unlikeDevices(found, t.Devices, driver, o.InstanceType)...)
			}
		}
	}
	return texts
}

// unlikeDevices returns a text for each declared group of which Nodes have fewer devices.
func unlikeDevices(observed, declared catalog.Devices, driver, instanceType string) []string {
	return lo.FilterMap(declared.Groups, func(g v1alpha1.Device, _ int) (string, bool) {
		count := int(lo.FromPtrOr(g.Count, 1))
		like := lo.SumBy(observed.Groups, func(o v1alpha1.Device) int {
			return lo.Ternary(isLike(o, g), int(lo.FromPtrOr(o.Count, 1)), 0)
		})
		return fmt.Sprintf("devices of %s of %s with the declared attributes and capacity: declared %d, observed %d", driver, instanceType, count, like),
			g.Driver == driver && like < count
	})
}

// isLike reports whether an observed device has everything that is declared.
func isLike(observed, declared v1alpha1.Device) bool {
	if observed.Driver != declared.Driver {
		return false
	}
	for name, attribute := range declared.Attributes {
		if !equality.Semantic.DeepEqual(observed.Attributes[name], attribute) {
			return false
		}
	}
	for name, quantity := range declared.Capacity {
		if found, has := observed.Capacity[name]; !has || found.Cmp(quantity) != 0 {
			return false
		}
	}
	return true
}
