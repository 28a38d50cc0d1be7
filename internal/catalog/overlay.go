// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// overlay is the current state of a template's offerings.
type overlay struct {
	// full reports whether the template is at spec.maxMachines, so that nothing can be
	// chosen.
	full bool
	// closed are the offerings that cannot be chosen now.
	closed []Key
	// left is how many machines the reservations in use have left.
	left []reservationLeft
}

type reservationLeft struct {
	id    string
	count int32
}

func (o overlay) equal(other overlay) bool {
	return o.full == other.full && slices.Equal(o.closed, other.closed) && slices.Equal(o.left, other.left)
}

func (o overlay) empty() bool { return !o.full && len(o.closed) == 0 && len(o.left) == 0 }

// overlayOf returns the overlay from the template's status and the memory. It closes
// offerings that are unavailable after a failure, whose scalable resource is paused, that
// are invalid, or that are at their limit. A reservation that is used up stays available
// with 0 machines left, as core requires it.
func (e *entry) overlayOf(template *v1alpha1.KarpenterMachineTemplate, now time.Time) overlay {
	var result overlay
	limits, usage := e.limits, e.usageOf(template)
	result.full = limits.template != nil && usage.nodeClaims >= *limits.template
	for _, o := range Unavailable(e.unavailable(template, now), now) {
		result.closed = append(result.closed, KeyOfMark(o))
	}
	result.closed = append(result.closed, e.pausedOf(template)...)
	result.closed = append(result.closed, usage.usedUp...)
	if accepted := e.acceptedOf(template); accepted != nil {
		for i := range e.types {
			for j := range e.types[i].Offerings {
				if key := e.types[i].KeyOf(&e.types[i].Offerings[j]); !accepted.Has(key) {
					result.closed = append(result.closed, key)
				}
			}
		}
	}
	left := map[string]int32{}
	for _, o := range usage.limited {
		key := KeyOfLimited(o)
		l := limits.offerings[key]
		switch { // The limit can have changed since the use was counted.
		case l.reservation != nil:
			left[l.reservation.ID] = max(0, l.reservation.Count-o.NodeClaims)
		case l.max != nil && o.NodeClaims >= *l.max:
			result.closed = append(result.closed, key)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(left)) {
		result.left = append(result.left, reservationLeft{id, left[id]})
	}
	return result
}

// pausedOf returns the offerings whose scalable resource is paused. An adopted MachineDeployment that
// rolls out can already offer another zone than it was adopted for.
func (e *entry) pausedOf(template *v1alpha1.KarpenterMachineTemplate) []Key {
	var keys []Key
	paused := sets.New[string]()
	for _, r := range template.Status.ScalableResources {
		if !r.Paused {
			continue
		}
		keys = append(keys, Key{r.InstanceType, r.Zone, r.CapacityType})
		if r.Kind == v1alpha1.ScalableResourceKindMachineDeployment {
			paused.Insert(r.Name)
		}
	}
	for i := range e.types {
		for j := range e.types[i].Offerings {
			if o := &e.types[i].Offerings[j]; paused.Has(o.MachineDeployment) {
				keys = append(keys, e.types[i].KeyOf(o))
			}
		}
	}
	return keys
}

// apply returns instance types with the overlay. It does not modify the given ones, and
// shares those that do not change.
func (o overlay) apply(instanceTypes []*cloudprovider.InstanceType) []*cloudprovider.InstanceType {
	if o.empty() {
		return instanceTypes
	}
	closed := sets.New(o.closed...)
	left := lo.SliceToMap(o.left, func(r reservationLeft) (string, int32) { return r.id, r.count })
	return lo.Map(instanceTypes, func(instanceType *cloudprovider.InstanceType, _ int) *cloudprovider.InstanceType {
		offerings, copied := instanceType.Offerings, false
		for i, offering := range instanceType.Offerings {
			available, capacity := offering.Available, offering.ReservationCapacity
			if o.full || closed.Has(Key{instanceType.Name, offering.Zone(), offering.CapacityType()}) {
				available = false
			}
			if rest, some := left[offering.ReservationID()]; some {
				capacity = int(rest)
			}
			if available == offering.Available && capacity == offering.ReservationCapacity {
				continue
			}
			if !copied {
				offerings, copied = slices.Clone(offerings), true
			}
			other := *offering
			other.Available, other.ReservationCapacity = available, capacity
			offerings[i] = &other
		}
		if !copied {
			return instanceType
		}
		return changed(instanceType, instanceType.Requirements, offerings)
	})
}

// changed returns an instance type with other requirements and offerings. It shares everything else with the given one.
func changed(it *cloudprovider.InstanceType, requirements scheduling.Requirements, offerings cloudprovider.Offerings) *cloudprovider.InstanceType {
	return &cloudprovider.InstanceType{
		Name:                   it.Name,
		Requirements:           requirements,
		Offerings:              offerings,
		Capacity:               it.Capacity,
		VolumeAttachmentLimits: it.VolumeAttachmentLimits,
		DynamicResources:       it.DynamicResources,
		Overhead:               it.Overhead,
	}
}

// compareKeys orders keys by instance type, zone and capacity type.
func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.InstanceType, b.InstanceType), cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.CapacityType, b.CapacityType))
}
