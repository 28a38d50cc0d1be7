// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// used is an offering that NodeClaims have, with the values of the oldest of them.
type used struct {
	Key                   Key
	Price                 float64
	Reservation           string
	Labels                map[string]string
	Capacity, Allocatable corev1.ResourceList
}

// usedBy returns the offerings that claims have, sorted by instance type, zone and
// capacity type.
func usedBy(claims []karpv1.NodeClaim) []used {
	found := map[Key]used{}
	for _, claim := range oldestFirst(claims) {
		if key := KeyOf(claim); Launched(claim) && !lo.HasKey(found, key) {
			found[key] = usedOf(key, claim)
		}
	}
	offerings := lo.Values(found)
	slices.SortFunc(offerings, func(a, b used) int {
		return compareKeys(a.Key, b.Key)
	})
	return offerings
}

func usedOf(key Key, claim *karpv1.NodeClaim) used {
	price, err := parsePrice(claim.Annotations[v1alpha1.PriceAnnotation])
	if err != nil {
		price = estimated.estimate(claim.Status.Capacity)
	}
	known := custom.Load().known
	labels := lo.PickBy(claim.Labels, func(label, _ string) bool {
		return known.Has(label) && label != karpv1.NodePoolLabelKey // those of the offering are set in any case
	})
	return used{
		Key: key, Price: price, Labels: labels, Reservation: claim.Labels[v1alpha1.ReservationIDLabel],
		Capacity: claim.Status.Capacity.DeepCopy(), Allocatable: claim.Status.Allocatable.DeepCopy(),
	}
}

// retired returns the offerings that NodeClaims have and that no source describes any more.
func retired(types []Type, offerings []used) []used {
	if len(offerings) == 0 {
		return nil
	}
	index := lo.SliceToMap(types, func(t Type) (string, []Offering) { return t.Name, t.Offerings })
	return lo.Reject(offerings, func(o used, _ int) bool {
		return slices.ContainsFunc(index[o.Key.InstanceType], func(other Offering) bool {
			return other.Zone == o.Key.Zone && other.CapacityType == o.Key.CapacityType
		})
	})
}

// withUsed returns types with the offerings that NodeClaims still have, because Karpenter
// replaces a claim whose offering is not listed. An offering that no source describes any
// more cannot be launched.
func withUsed(types []Type, offerings []used) []Type {
	offerings = retired(types, offerings)
	if len(offerings) == 0 {
		return types
	}
	result, index := slices.Clone(types), map[string]int{}
	for i := range result {
		index[result[i].Name] = i
	}
	for _, o := range offerings {
		at, listed := index[o.Key.InstanceType]
		if !listed {
			at = len(result)
			index[o.Key.InstanceType] = at
			result = append(result, Type{Name: o.Key.InstanceType, Capacity: o.Capacity, Allocatable: o.Allocatable, Labels: o.Labels})
		}
		result[at].Offerings = append(slices.Clone(result[at].Offerings), Offering{
			Zone: o.Key.Zone, CapacityType: o.Key.CapacityType, Price: o.Price, ListPrice: o.Price, Retired: true, Reservation: reservationOf(types, o),
		})
	}
	return result
}

// reservationOf returns the reservation of an offering in use. Of several offerings with
// one id, Karpenter uses the one with the fewest machines left, so the count must be that
// of the offerings that still exist (karpenter:
// pkg/controllers/provisioning/scheduling/reservationmanager.go).
func reservationOf(types []Type, o used) *v1alpha1.Reservation {
	if o.Reservation == "" {
		return nil
	}
	for i := range types {
		for _, other := range types[i].Offerings {
			if r := other.Reservation; r != nil && r.ID == o.Reservation {
				return r
			}
		}
	}
	return &v1alpha1.Reservation{ID: o.Reservation}
}
