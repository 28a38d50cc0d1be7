// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
)

// maxShared is how many shared attributes a device can have.
const maxShared = 8

// separate returns devices each as a group of its own.
func separate(devices catalog.Devices) catalog.Devices {
	devices.Groups = lo.FlatMap(devices.Groups, func(g v1alpha1.Device, _ int) []v1alpha1.Device {
		count := int(lo.FromPtrOr(g.Count, 1))
		g.Count = nil
		return slices.Repeat([]v1alpha1.Device{g}, count)
	})
	return devices
}

// grouped joins equal devices that follow each other.
func grouped(devices []v1alpha1.Device) []v1alpha1.Device {
	var groups []v1alpha1.Device
	for _, device := range devices {
		if last := len(groups) - 1; last >= 0 {
			one := groups[last]
			one.Count = nil
			if equality.Semantic.DeepEqual(one, device) {
				groups[last].Count = new(lo.FromPtrOr(groups[last].Count, 1) + 1)
				continue
			}
		}
		groups = append(groups, device)
	}
	return groups
}

// formOf returns what must be equal for Nodes to have the same devices, as a text: everything but names and attributes.
func formOf(devices catalog.Devices) string {
	devices.Groups = lo.Map(devices.Groups, func(g v1alpha1.Device, _ int) v1alpha1.Device {
		g.Name, g.Attributes, g.SharedAttributes = "", nil, nil
		return g
	})
	return string(lo.Must(json.Marshal(devices))) // values of the API can be encoded
}

// ofMostNodes returns what the Nodes publish that have the most frequent form. If two are as frequent, it is the one that is known,
// or else the one with fewer devices, because Karpenter must not plan Pods that do not fit on most Nodes.
func ofMostNodes(known catalog.Devices, published []catalog.Devices) []catalog.Devices {
	byForm, knownForm := lo.GroupBy(published, formOf), formOf(known)
	forms := slices.SortedFunc(maps.Keys(byForm), func(a, b string) int {
		return cmp.Or(
			cmp.Compare(len(byForm[b]), len(byForm[a])),
			-compareBools(a == knownForm, b == knownForm),
			cmp.Compare(len(byForm[a][0].Groups), len(byForm[b][0].Groups)),
			cmp.Compare(a, b),
		)
	})
	return byForm[forms[0]]
}

func compareBools(a, b bool) int { return lo.Ternary(a, 1, 0) - lo.Ternary(b, 1, 0) }

// agree reports whether devices of the same form have all attributes of others, with the same values.
func agree(known, published catalog.Devices) bool {
	return lo.EveryBy(lo.Range(len(known.Groups)), func(i int) bool {
		return lo.EveryBy(lo.Entries(known.Groups[i].Attributes), func(a lo.Entry[string, v1alpha1.DeviceAttribute]) bool {
			value, has := published.Groups[i].Attributes[a.Key]
			return has && equality.Semantic.DeepEqual(value, a.Value)
		})
	})
}

// common returns what the devices of several Nodes with the same form have in common. Of an attribute whose values differ from
// Node to Node, such as the root of a bus, it is which devices have the same value on each Node.
func common(nodes []catalog.Devices) catalog.Devices {
	result := nodes[0]
	result.Groups = slices.Clone(result.Groups)
	texts := map[string][]string{} // the values of each attribute that differ, by the value of its first device
	for i := range result.Groups {
		device := &result.Groups[i]
		same := lo.EveryBy(nodes, func(n catalog.Devices) bool { return n.Groups[i].Name == device.Name })
		device.Name = lo.Ternary(same, device.Name, "")
		device.Attributes, device.SharedAttributes = nil, nil
		for _, name := range slices.Sorted(maps.Keys(nodes[0].Groups[i].Attributes)) {
			values := valuesOf(nodes, i, name)
			switch {
			case len(values) < len(nodes): // some Nodes lack it
			case len(lo.Uniq(values)) == 1:
				device.Attributes = lo.Assign(device.Attributes, map[string]v1alpha1.DeviceAttribute{name: nodes[0].Groups[i].Attributes[name]})
			default:
				text := strings.Join(values, ",")
				if !slices.Contains(texts[name], text) {
					texts[name] = append(texts[name], text)
				}
				number := v1alpha1.LabelValue(strconv.Itoa(slices.Index(texts[name], text)))
				device.SharedAttributes = lo.Assign(device.SharedAttributes, map[string]v1alpha1.LabelValue{name: number})
			}
		}
	}
	dropUnshared(result.Groups)
	return result
}

// valuesOf returns the values of an attribute of a device on each Node that has it, as texts.
func valuesOf(nodes []catalog.Devices, device int, name string) []string {
	return lo.FilterMap(nodes, func(n catalog.Devices, _ int) (string, bool) {
		value, has := n.Groups[device].Attributes[name]
		return valueText(value), has
	})
}

// valueText returns the value of an attribute as a text.
func valueText(a v1alpha1.DeviceAttribute) string {
	switch {
	case a.Int != nil:
		return strconv.FormatInt(*a.Int, 10)
	case a.Bool != nil:
		return strconv.FormatBool(*a.Bool)
	case a.Version != nil:
		return "v" + *a.Version
	}
	return strconv.Quote(lo.FromPtr(a.String))
}

// dropUnshared removes shared attributes that only one device has, and those that are too many.
func dropUnshared(devices []v1alpha1.Device) {
	type shared struct {
		name string
		text v1alpha1.LabelValue
	}
	counts := map[shared]int{}
	for i := range devices {
		for name, text := range devices[i].SharedAttributes {
			counts[shared{name, text}]++
		}
	}
	for i := range devices {
		left := lo.PickBy(devices[i].SharedAttributes, func(name string, text v1alpha1.LabelValue) bool { return counts[shared{name, text}] > 1 })
		names := slices.Sorted(maps.Keys(left))
		devices[i].SharedAttributes = nil
		if len(names) > 0 {
			devices[i].SharedAttributes = lo.PickByKeys(left, names[:min(len(names), maxShared)])
		}
	}
}
