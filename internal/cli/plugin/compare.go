// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
)

// Differences are what changes from one content of a catalog to another.
type Differences struct {
	// Catalog is the name.
	Catalog string `json:"catalog"`
	// Added and Removed are names of instance types.
	Added   []string `json:"added,omitempty"`
	Removed []string `json:"removed,omitempty"`
	// Changed are instance types that both contents have.
	Changed []TypeDifferences `json:"changed,omitempty"`
	// Other changes are those of the catalog as a whole.
	Other []string `json:"other,omitempty"`
}

// TypeDifferences are what changes of an instance type.
type TypeDifferences struct {
	Name   string        `json:"name"`
	Prices []PriceChange `json:"prices,omitempty"`
	// Other changes are those of offerings, capacity and labels.
	Other []string `json:"other,omitempty"`
}

// PriceChange is a change of the price of offerings.
type PriceChange struct {
	// Offering is the capacity type and the zones that have the same change.
	Offering string `json:"offering"`
	From     string `json:"from"`
	To       string `json:"to"`
}

func (d *Differences) empty() bool {
	return len(d.Added)+len(d.Removed)+len(d.Changed)+len(d.Other) == 0
}

// Compare returns what changes from one content of a catalog to another. Prices are those that
// offerings have in the end, whether they are set or computed.
func Compare(before, after *v1alpha1.InstanceTypeCatalog) *Differences {
	d := &Differences{Catalog: after.Name}
	if before.Spec.Source != after.Spec.Source {
		d.Other = append(d.Other, change("source", before.Spec.Source, after.Spec.Source))
	}
	if before.Spec.Currency != after.Spec.Currency {
		d.Other = append(d.Other, change("currency", before.Spec.Currency, after.Spec.Currency))
	}
	d.Other = append(d.Other, changes("label ", before.Labels, after.Labels)...)
	d.Other = append(d.Other, changes("annotation ", before.Annotations, after.Annotations)...)
	types, typesNow := typesOf(before), typesOf(after)
	for _, name := range slices.Sorted(maps.Keys(sets.KeySet(types).Union(sets.KeySet(typesNow)))) {
		was, existed := types[name]
		is, exists := typesNow[name]
		switch {
		case !existed:
			d.Added = append(d.Added, name)
		case !exists:
			d.Removed = append(d.Removed, name)
		default:
			if changed := compareTypes(was, is); len(changed.Prices)+len(changed.Other) > 0 {
				d.Changed = append(d.Changed, changed)
			}
		}
	}
	if d.empty() && !sameContent(before, after) {
		d.Other = []string{"the same instance types and prices, written in another way"}
	}
	return d
}

// typesOf returns the instance types of a catalog by name, those without offerings that can be
// used as well.
func typesOf(c *v1alpha1.InstanceTypeCatalog) map[string]catalog.Type {
	found, _ := catalog.Expand(&c.Spec)
	types := lo.KeyBy(found, func(t catalog.Type) string { return t.Name })
	for _, it := range c.Spec.InstanceTypes {
		if _, usable := types[it.Name]; !usable {
			types[it.Name] = catalog.Type{Name: it.Name}
		}
	}
	return types
}

func compareTypes(was, is catalog.Type) TypeDifferences {
	d := TypeDifferences{Name: is.Name}
	zones := map[PriceChange][]string{}
	for i := range is.Offerings {
		o := &is.Offerings[i]
		key := lo.CoalesceOrEmpty(o.Zone, "no zone")
		old := was.Find(o.Zone, o.CapacityType)
		switch {
		case old == nil:
			d.Other = append(d.Other, fmt.Sprintf("offering %s %s: added, price %s", o.CapacityType, key, number(o.Price)))
		case number(old.Price) != number(o.Price):
			p := PriceChange{Offering: o.CapacityType, From: number(old.Price), To: number(o.Price)}
			zones[p] = append(zones[p], key)
		}
		if old != nil && limitOf(old) != limitOf(o) {
			field := lo.Ternary(o.Reservation != nil, "reservation", "maxMachines")
			d.Other = append(d.Other, change(fmt.Sprintf("offering %s %s: %s", o.CapacityType, key, field), limitOf(old), limitOf(o)))
		}
	}
	for i := range was.Offerings {
		if o := &was.Offerings[i]; is.Find(o.Zone, o.CapacityType) == nil {
			d.Other = append(d.Other, fmt.Sprintf("offering %s %s: removed", o.CapacityType, lo.CoalesceOrEmpty(o.Zone, "no zone")))
		}
	}
	for p, names := range zones {
		slices.Sort(names)
		p.Offering += " " + strings.Join(names, ", ")
		d.Prices = append(d.Prices, p)
	}
	slices.SortFunc(d.Prices, func(a, b PriceChange) int { return strings.Compare(a.Offering, b.Offering) })
	slices.Sort(d.Other)
	capacity := func(t catalog.Type) map[string]string {
		texts := map[string]string{}
		for name, quantity := range t.Capacity {
			texts[string(name)] = quantity.String()
		}
		return texts
	}
	d.Other = append(d.Other, changes("capacity.", capacity(was), capacity(is))...)
	volumes := func(t catalog.Type) map[string]string {
		return lo.MapValues(t.VolumeAttachmentLimits, func(limit int32, _ string) string { return strconv.Itoa(int(limit)) })
	}
	d.Other = append(d.Other, changes("volumeAttachmentLimits.", volumes(was), volumes(is))...)
	if !was.Devices.Same(is.Devices) {
		d.Other = append(d.Other, changeOfDevices(was.Devices.String(), is.Devices.String()))
	}
	d.Other = append(d.Other, changes("label ", was.Labels, is.Labels)...)
	return d
}

// changeOfDevices returns how devices change, of which the texts have the numbers.
func changeOfDevices(was, is string) string {
	if was == is {
		return "devices: other attributes, capacity or counters"
	}
	return change("devices", was, is)
}

// number returns a price without the errors of floating point numbers.
func number(price float64) string {
	return strconv.FormatFloat(price, 'g', 10, 64)
}

func limitOf(o *catalog.Offering) string {
	switch {
	case o.Reservation != nil:
		return fmt.Sprintf("%s of %d", o.Reservation.ID, o.Reservation.Count)
	case o.MaxMachines != nil:
		return strconv.Itoa(int(*o.MaxMachines))
	default:
		return ""
	}
}

// changes returns the changes of named values.
func changes(prefix string, before, after map[string]string) []string {
	var found []string
	for _, key := range slices.Sorted(maps.Keys(sets.KeySet(before).Union(sets.KeySet(after)))) {
		if before[key] != after[key] {
			found = append(found, change(prefix+key, before[key], after[key]))
		}
	}
	return found
}

func change(what, from, to string) string {
	return fmt.Sprintf("%s: %s → %s", what, lo.CoalesceOrEmpty(from, "none"), lo.CoalesceOrEmpty(to, "none"))
}
