// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Build returns types in Karpenter's form, in the same order. It registers the labels of
// the types with Karpenter.
func Build(template *v1alpha1.KarpenterMachineTemplate, types []Type) ([]*cloudprovider.InstanceType, []Problem) {
	b := newBuilder(template, types)
	built := make([]*cloudprovider.InstanceType, 0, len(types))
	var problems []Problem
	for i := range types {
		instanceType, err := b.build(&types[i])
		if err != nil {
			problems = append(problems, Problem{v1alpha1.ReasonInstanceTypesInvalid, "instance type " + types[i].Name + ": " + err.Error()})
			continue
		}
		built = append(built, instanceType)
	}
	return built, problems
}

// builder builds the instance types of one template. It uses one value for equal
// requirements, because there are about ten thousand of them and none is ever modified.
type builder struct {
	kubelet *v1alpha1.KubeletConfiguration
	// keys are the label keys for which every type has a requirement: those that a type
	// lacks do not exist on its Nodes.
	keys     []string
	observed map[string]v1alpha1.ObservedCapacity
	devices  map[string]v1alpha1.ObservedDevices
	// compared has the prices that differ from those of the offerings, because of spec.spread.
	compared     map[Key]float64
	requirements map[[2]string]*scheduling.Requirement
	absent       map[string]*scheduling.Requirement
	offerings    map[[3]string]scheduling.Requirements
}

func newBuilder(template *v1alpha1.KarpenterMachineTemplate, types []Type) *builder {
	keys := []string{corev1.LabelTopologyRegion, corev1.LabelWindowsBuild}
	keys = append(append(keys, ownLabels...), sets.List(register(types).keys)...)
	return &builder{
		kubelet:      template.Spec.Kubelet,
		keys:         keys,
		observed:     lo.KeyBy(observedNow(template), func(o v1alpha1.ObservedCapacity) string { return o.InstanceType }),
		devices:      lo.KeyBy(devicesNow(template), func(o v1alpha1.ObservedDevices) string { return o.InstanceType }),
		compared:     compared(template, types),
		requirements: map[[2]string]*scheduling.Requirement{},
		absent:       map[string]*scheduling.Requirement{},
		offerings:    map[[3]string]scheduling.Requirements{},
	}
}

func (b *builder) build(t *Type) (*cloudprovider.InstanceType, error) {
	kubelet := KubeletOf(b.kubelet, t.Capacity)
	capacity := capacityOf(t.Capacity, kubelet)
	overhead, err := overheadOf(capacity, kubelet)
	if err != nil {
		return nil, err
	}
	if t.Allocatable != nil {
		capacity, overhead = asObserved(nil, &cloudprovider.InstanceTypeOverhead{}, v1alpha1.ObservedCapacity{Capacity: t.Capacity, Allocatable: t.Allocatable})
	} else if observed, seen := b.observed[t.Name]; seen {
		capacity, overhead = asObserved(capacity, overhead, observed)
	}
	return &cloudprovider.InstanceType{
		Name:         t.Name,
		Requirements: b.requirementsOf(t),
		Capacity:     capacity,
		Overhead:     overhead,
		Offerings:    lo.Map(t.Offerings, func(_ Offering, i int) *cloudprovider.Offering { return b.offering(t, &t.Offerings[i]) }),

		VolumeAttachmentLimits: volumesOf(t, b.observed[t.Name]),
		DynamicResources:       dynamicResources(t.Name, devicesOf(t, b.devices[t.Name])),
	}, nil
}

func (b *builder) offering(t *Type, o *Offering) *cloudprovider.Offering {
	offering := &cloudprovider.Offering{
		Requirements: b.offeringRequirements(o.Zone, o.CapacityType, lo.FromPtr(o.Reservation).ID),
		Price:        o.Price,
		// With maxMachines 0 an offering is never in use, so the overlay does not close it.
		Available: !o.Paused && !o.Retired && (o.MaxMachines == nil || *o.MaxMachines > 0),
	}
	if price, differs := b.compared[t.KeyOf(o)]; differs {
		offering.Price = price
	}
	if o.Reservation != nil {
		offering.ReservationCapacity = int(o.Reservation.Count)
	}
	return offering
}

func (b *builder) offeringRequirements(zone, capacityType, reservation string) scheduling.Requirements {
	key := [3]string{zone, capacityType, reservation}
	if _, known := b.offerings[key]; !known {
		b.offerings[key] = scheduling.NewRequirements(
			b.isOrNot(karpv1.CapacityTypeLabelKey, capacityType),
			b.isOrNot(corev1.LabelTopologyZone, zone),
			b.isOrNot(v1alpha1.ReservationIDLabel, reservation),
		)
	}
	return b.offerings[key]
}

// requirementsOf returns the labels of a type's Nodes as requirements. It names every
// label that Karpenter knows, as cloudprovider.InstanceType requires: a label without a
// value does not exist on the Node, so that no Pod waits for it.
func (b *builder) requirementsOf(t *Type) scheduling.Requirements {
	requirements := make(scheduling.Requirements, len(b.keys)+7)
	for _, key := range b.keys {
		requirements[key] = b.not(key)
	}
	for key, value := range t.NodeLabels() {
		requirements[key] = b.is(key, value)
	}
	requirements[corev1.LabelInstanceTypeStable] = b.is(corev1.LabelInstanceTypeStable, t.Name)
	b.addOfferings(requirements, t)
	return requirements
}

// addOfferings sets the requirements that follow from the offerings of a type.
func (b *builder) addOfferings(requirements scheduling.Requirements, t *Type) {
	values := func(key string, of func(Offering) string) {
		found := lo.Uniq(lo.Compact(lo.Map(t.Offerings, func(o Offering, _ int) string { return of(o) })))
		switch len(found) {
		case 0:
			requirements[key] = b.not(key)
		case 1:
			requirements[key] = b.is(key, found[0])
		default:
			requirements[key] = scheduling.NewRequirement(key, corev1.NodeSelectorOpIn, found...)
		}
	}
	values(corev1.LabelTopologyZone, func(o Offering) string { return o.Zone })
	values(karpv1.CapacityTypeLabelKey, func(o Offering) string { return o.CapacityType })
	values(v1alpha1.ReservationIDLabel, func(o Offering) string { return lo.FromPtr(o.Reservation).ID })
}

// isOrNot returns the requirement that a label has a value or, if the value is empty, that
// the label does not exist.
func (b *builder) isOrNot(key, value string) *scheduling.Requirement {
	if value == "" {
		return b.not(key)
	}
	return b.is(key, value)
}

// is returns the requirement that a label has a value, which can be empty.
func (b *builder) is(key, value string) *scheduling.Requirement {
	at := [2]string{key, value}
	if b.requirements[at] == nil {
		b.requirements[at] = scheduling.NewRequirement(key, corev1.NodeSelectorOpIn, value)
	}
	return b.requirements[at]
}

func (b *builder) not(key string) *scheduling.Requirement {
	if b.absent[key] == nil {
		b.absent[key] = scheduling.NewRequirement(key, corev1.NodeSelectorOpDoesNotExist)
	}
	return b.absent[key]
}

// asObserved returns capacity and overhead as the Nodes of a type report them.
func asObserved(capacity corev1.ResourceList, overhead *cloudprovider.InstanceTypeOverhead, observed v1alpha1.ObservedCapacity) (corev1.ResourceList, *cloudprovider.InstanceTypeOverhead) {
	capacity, total := merged(capacity, observed.Capacity), overhead.Total()
	for name, allocatable := range observed.Allocatable {
		whole := capacity[name]
		rest := whole.DeepCopy()
		rest.Sub(allocatable)
		if name == corev1.ResourceMemory {
			rest.Sub(hugepages(capacity)) // core subtracts them, too
		}
		if rest.Sign() < 0 {
			rest.Set(0)
		}
		total[name] = rest
	}
	return capacity, &cloudprovider.InstanceTypeOverhead{KubeReserved: total}
}
