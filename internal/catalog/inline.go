// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Source is one description of an instance type: an entry of spec.instanceTypes, or a
// discovered object.
type Source struct {
	// Name identifies it in messages, such as "MachineDeployment fleet/md-0".
	Name string
	Type
}

// inline returns the entries of spec.instanceTypes, in their order.
func inline(template *v1alpha1.KarpenterMachineTemplate) ([]Source, []Problem) {
	var sources []Source
	var problems []Problem
	for i := range template.Spec.InstanceTypes {
		given := &template.Spec.InstanceTypes[i]
		source, err := sourceOf(template, given)
		source.Name = fmt.Sprintf("spec.instanceTypes[%d]", i)
		if err == nil {
			err = usable(source.Capacity, template.Spec.Kubelet)
		}
		if err != nil {
			problems = append(problems, Problem{v1alpha1.ReasonInstanceTypesInvalid, fmt.Sprintf("%s (%s): %s", source.Name, given.Name, err)})
			continue
		}
		sources = append(sources, source)
	}
	return sources, problems
}

func sourceOf(template *v1alpha1.KarpenterMachineTemplate, given *v1alpha1.InstanceType) (Source, error) {
	source := Source{Type: Type{
		Name:     given.Name,
		Capacity: corev1.ResourceList(given.Capacity),
		Labels:   lo.MapValues(given.Labels, func(value v1alpha1.LabelValue, _ string) string { return string(value) }),
	}}
	if given.InfrastructureRef == nil && template.Spec.Template.Spec.InfrastructureRef == nil {
		return source, fmt.Errorf("infrastructureRef: set it here or in spec.template.spec, because machines are generated from it")
	}
	for i := range given.Offerings {
		o := &given.Offerings[i]
		capacityType := lo.CoalesceOrEmpty(string(o.CapacityType), karpv1.CapacityTypeOnDemand)
		price, err := parsePrice(o.Price)
		if err != nil {
			return source, fmt.Errorf("offering %s/%s: %w", o.Zone, capacityType, err)
		}
		source.Offerings = append(source.Offerings, Offering{
			Zone:              o.Zone,
			FailureDomain:     lo.CoalesceOrEmpty(o.FailureDomain, o.Zone),
			CapacityType:      capacityType,
			Price:             price,
			MaxMachines:       o.MaxMachines,
			Reservation:       o.Reservation,
			InfrastructureRef: given.InfrastructureRef,
		})
	}
	return source, nil
}

func parsePrice(text string) (float64, error) {
	price, err := strconv.ParseFloat(text, 64)
	if err != nil || price < 0 || math.IsInf(price, 0) || math.IsNaN(price) {
		return 0, fmt.Errorf("price %q is not a decimal number of at least 0", text)
	}
	return price, nil
}

// usable returns an error for a capacity that no machine can have, or that is less than
// the kubelet reserves.
func usable(capacity corev1.ResourceList, kubelet *v1alpha1.KubeletConfiguration) error {
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
	capacity = capacityOf(capacity, kubelet)
	overhead, err := overheadOf(capacity, kubelet)
	if err != nil {
		return err
	}
	total := overhead.Total()
	for _, name := range slices.Sorted(maps.Keys(total)) {
		if whole := capacity[name]; lo.ToPtr(total[name]).Cmp(whole) > 0 {
			return fmt.Errorf("kubelet reserves more %s than the capacity of %s", name, whole.String())
		}
	}
	return nil
}

const (
	pricePerCPU = 0.03
	pricePerGiB = 0.004
	pricePerGPU = 0.5
)

// estimate returns a price for a machine without one: 0.03 for each CPU, 0.004 for each
// GiB of memory and 0.5 for each GPU. With it the smaller machine is the cheaper one,
// which is sufficient for Karpenter to choose among machines without prices.
func estimate(capacity corev1.ResourceList) float64 {
	gib := resource.MustParse("1Gi")
	return pricePerCPU*capacity.Cpu().AsApproximateFloat64() +
		pricePerGiB*capacity.Memory().AsApproximateFloat64()/gib.AsApproximateFloat64() +
		pricePerGPU*float64(gpus(capacity))
}
