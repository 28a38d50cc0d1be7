// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/inventory"
)

// Checked is what a catalog has, and what is wrong with it.
type Checked struct {
	// InstanceTypes is how many instance types can be used, and Offerings how many offerings they have.
	InstanceTypes, Offerings int
	// Problems are why other instance types cannot be used.
	Problems []error
	// Adjustments are why adjustments of prices have no effect.
	Adjustments []error
}

// Check returns what a catalog has, and what is wrong with it. It does not depend on a template.
func Check(spec *v1alpha1.InstanceTypeCatalogSpec) Checked {
	types, problems, used := expand(spec)
	checked := Checked{InstanceTypes: len(types), Offerings: lo.SumBy(types, func(t Type) int { return len(t.Offerings) }), Problems: problems}
	switch {
	case len(lo.FromPtr(spec.Pricing).Adjustments) == 0:
	case used == nil:
		checked.Adjustments = problems
	default:
		checked.Adjustments = used.unused()
	}
	return checked
}

// Expand returns the instance types of a catalog that can be used, with the offerings and prices that
// follow from the catalog, and what is wrong with the others. It does not depend on a template.
func Expand(spec *v1alpha1.InstanceTypeCatalogSpec) ([]Type, []error) {
	types, problems, _ := expand(spec)
	return types, problems
}

// expand returns also how prices were adjusted; nil if no instance type can be used, which is the only problem then.
func expand(spec *v1alpha1.InstanceTypeCatalogSpec) (types []Type, problems []error, used *adjuster) {
	used, err := eachType(spec, func(given *v1alpha1.InstanceType, found Type, err error) {
		if err != nil {
			problems = append(problems, fmt.Errorf("instance type %s: %w", given.Name, err))
			return
		}
		types = append(types, found)
	})
	if err != nil {
		return nil, []error{err}, nil
	}
	return types, problems, used
}

// eachType calls do with each instance type of a catalog, or with what is wrong with it. It returns how prices were
// adjusted, or an error if no instance type can be used.
func eachType(spec *v1alpha1.InstanceTypeCatalogSpec, do func(given *v1alpha1.InstanceType, found Type, err error)) (*adjuster, error) {
	if err := checkSize(spec); err != nil {
		return nil, err
	}
	prices, err := pricesOfCatalog(spec.Pricing)
	if err != nil {
		return nil, err
	}
	adjuster, err := adjusterOf(spec)
	if err != nil {
		return nil, err
	}
	for i := range spec.InstanceTypes {
		given := &spec.InstanceTypes[i]
		found, err := typeOf(spec, given, prices)
		if err == nil {
			adjuster.adjust(&found)
		}
		do(given, found, err)
	}
	return adjuster, nil
}

// ReasonOf returns the reason of conditions for what is wrong with a catalog.
func ReasonOf(err error) string {
	if errors.As(err, &TooManyError{}) {
		return v1alpha1.ReasonTooManyOfferings
	}
	return v1alpha1.ReasonInstanceTypesInvalid
}

// typeOf returns an instance type of a catalog with the offerings that it has itself, or else with
// those of the catalog.
func typeOf(spec *v1alpha1.InstanceTypeCatalogSpec, given *v1alpha1.InstanceType, prices prices) (Type, error) {
	found := Type{
		Name:     given.Name,
		Capacity: corev1.ResourceList(given.Capacity),
		Labels:   lo.MapValues(given.Labels, func(value v1alpha1.LabelValue, _ string) string { return string(value) }),

		VolumeAttachmentLimits: given.VolumeAttachmentLimits,
		Devices:                Devices{given.Devices, given.DeviceCounters},
	}
	if err := cmp.Or(checkCapacity(found.Capacity), checkLabels(found.Labels), checkVolumes(found.VolumeAttachmentLimits), checkDevices(found.Devices)); err != nil {
		return Type{}, err
	}
	offerings := offeringsOf(spec, given)
	if len(offerings) == 0 {
		return Type{}, errors.New("it has no offerings: set offerings here or for all instance types of the catalog")
	}
	seen := sets.New[Key]()
	for i := range offerings {
		o := &offerings[i]
		capacityType := capacityTypeOf(o)
		price, err := prices.of(given, o, capacityType)
		if err != nil {
			return Type{}, fmt.Errorf("offering %s: %w", Key{Zone: strings.Join(zonesIn(o), ","), CapacityType: capacityType}, err)
		}
		for _, zone := range zonesIn(o) {
			key := Key{Zone: zone, CapacityType: capacityType}
			if seen.Has(key) {
				return Type{}, fmt.Errorf("offering %s is given twice: name each zone once for each capacity type", key)
			}
			seen.Insert(key)
			pools, err := inventory.PoolsOf(o.CapacityFrom, given.Name, zone)
			if err != nil {
				return Type{}, fmt.Errorf("offering %s: %w", key, err)
			}
			found.Offerings = append(found.Offerings, Offering{
				Zone: zone, CapacityType: capacityType, Price: price,
				MaxMachines: o.MaxMachines, Reservation: o.Reservation, Pools: pools, InfrastructureRef: given.InfrastructureRef,
			})
		}
	}
	return found, nil
}

// offeringsOf returns the offerings of an instance type of a catalog.
func offeringsOf(spec *v1alpha1.InstanceTypeCatalogSpec, given *v1alpha1.InstanceType) []v1alpha1.Offering {
	if len(given.Offerings) == 0 {
		return spec.Offerings
	}
	return given.Offerings
}

func capacityTypeOf(o *v1alpha1.Offering) string {
	return lo.CoalesceOrEmpty(string(o.CapacityType), karpv1.CapacityTypeOnDemand)
}

// zonesIn returns the zones of an offering. An offering without zones has the zone "".
func zonesIn(o *v1alpha1.Offering) []string {
	if len(o.Zones) == 0 {
		return []string{""}
	}
	return lo.Map(o.Zones, func(zone v1alpha1.Zone, _ int) string { return string(zone) })
}

// maxPods is the maximum of kubelet.maxPods, too.
const maxPods = 4096

// checkCapacity returns an error for a capacity that no machine can have.
func checkCapacity(capacity corev1.ResourceList) error {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if quantity := capacity[name]; quantity.Sign() <= 0 {
			return fmt.Errorf("capacity.%s must be more than 0, found %s", name, quantity.String())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(capacity)) {
		if quantity := capacity[name]; quantity.Sign() < 0 {
			return fmt.Errorf("capacity.%s must not be less than 0, found %s", name, quantity.String())
		}
	}
	if pods, given := capacity[corev1.ResourcePods]; given && (pods.CmpInt64(1) < 0 || pods.CmpInt64(maxPods) > 0 || pods.MilliValue()%1000 != 0) {
		return fmt.Errorf("capacity.pods must be a whole number from 1 to %d, found %s", maxPods, pods.String())
	}
	return nil
}
