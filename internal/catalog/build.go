// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"
	"sigs.k8s.io/karpenter/pkg/utils/resources"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Build returns the instance types that a template offers, in the template's
// order. Those that cannot be offered are left out, and the error names each of
// them and what to mend; the others are returned all the same.
func Build(template *v1alpha1.KarpenterMachineTemplate) ([]*cloudprovider.InstanceType, error) {
	var instanceTypes []*cloudprovider.InstanceType
	var problems []error
	for i := range template.Spec.InstanceTypes {
		instanceType, err := build(template, &template.Spec.InstanceTypes[i])
		if err != nil {
			problems = append(problems, fmt.Errorf("spec.instanceTypes[%d] (%s): %w", i, template.Spec.InstanceTypes[i].Name, err))
			continue
		}
		instanceTypes = append(instanceTypes, instanceType)
	}
	return instanceTypes, errors.Join(problems...)
}

func build(template *v1alpha1.KarpenterMachineTemplate, instanceType *v1alpha1.InstanceType) (*cloudprovider.InstanceType, error) {
	if instanceType.InfrastructureRef == nil && template.Spec.Template.Spec.InfrastructureRef == nil {
		return nil, errors.New("infrastructureRef: set it here or in spec.template.spec, so that there is something to make machines from")
	}
	capacity := capacityOf(instanceType, template.Spec.Kubelet)
	if err := positive(capacity); err != nil {
		return nil, err
	}
	overhead, err := overheadOf(capacity, template.Spec.Kubelet)
	if err != nil {
		return nil, err
	}
	for name, quantity := range resources.Subtract(capacity, overhead.Total()) {
		if total := capacity[name]; quantity.Sign() < 0 {
			return nil, fmt.Errorf("kubelet reserves more %s than the capacity of %s", name, total.String())
		}
	}
	built := &cloudprovider.InstanceType{
		Name:         instanceType.Name,
		Requirements: requirementsOf(instanceType),
		Capacity:     capacity,
		Overhead:     overhead,
	}
	for _, offering := range instanceType.Offerings {
		price, err := strconv.ParseFloat(offering.Price, 64)
		if err != nil || price < 0 || math.IsInf(price, 0) || math.IsNaN(price) {
			return nil, fmt.Errorf("offering %s/%s: price %q is not a decimal number of at least 0", offering.Zone, offering.CapacityType, offering.Price)
		}
		built.Offerings = append(built.Offerings, &cloudprovider.Offering{
			Requirements: scheduling.NewRequirements(
				scheduling.NewRequirement(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, string(offering.CapacityType)),
				zoneRequirement(offering.Zone),
			),
			Price:     price,
			Available: true,
		})
	}
	return built, nil
}

// positive returns an error for a quantity that no machine can have.
func positive(capacity corev1.ResourceList) error {
	for _, name := range slices.Sorted(maps.Keys(capacity)) {
		if quantity := capacity[name]; quantity.Sign() < 0 || (quantity.IsZero() && (name == corev1.ResourceCPU || name == corev1.ResourceMemory)) {
			return fmt.Errorf("capacity.%s must be more than 0, found %s", name, quantity.String())
		}
	}
	return nil
}

// requirementsOf returns what nodes of an instance type look like. Every label
// that Karpenter knows is named, as cloudprovider.InstanceType asks for: a label
// that is not given does not exist on the node, so that no Pod waits for it.
func requirementsOf(instanceType *v1alpha1.InstanceType) scheduling.Requirements {
	zones := lo.Uniq(lo.FilterMap(instanceType.Offerings, func(o v1alpha1.Offering, _ int) (string, bool) { return o.Zone, o.Zone != "" }))
	capacityTypes := lo.Uniq(lo.Map(instanceType.Offerings, func(o v1alpha1.Offering, _ int) string { return string(o.CapacityType) }))
	requirements := scheduling.NewRequirements(
		scheduling.NewRequirement(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpIn, instanceType.Name),
		scheduling.NewRequirement(corev1.LabelArchStable, corev1.NodeSelectorOpIn, karpv1.ArchitectureAmd64),
		scheduling.NewRequirement(corev1.LabelOSStable, corev1.NodeSelectorOpIn, string(corev1.Linux)),
		scheduling.NewRequirement(corev1.LabelTopologyRegion, corev1.NodeSelectorOpDoesNotExist),
		scheduling.NewRequirement(corev1.LabelWindowsBuild, corev1.NodeSelectorOpDoesNotExist),
		scheduling.NewRequirement(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, capacityTypes...),
	)
	if len(zones) > 0 {
		requirements.Add(scheduling.NewRequirement(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, zones...))
	} else {
		requirements.Add(zoneRequirement(""))
	}
	for key, value := range instanceType.Labels {
		// Add would intersect with the defaults above; a given label replaces them.
		requirements[key] = scheduling.NewRequirement(key, corev1.NodeSelectorOpIn, string(value))
	}
	return requirements
}

func zoneRequirement(zone string) *scheduling.Requirement {
	if zone == "" {
		return scheduling.NewRequirement(corev1.LabelTopologyZone, corev1.NodeSelectorOpDoesNotExist)
	}
	return scheduling.NewRequirement(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, zone)
}
