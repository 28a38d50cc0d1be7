// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Source is one description of an instance type: an entry of spec.instanceTypes or of an
// InstanceTypeCatalog, or a discovered object.
type Source struct {
	// Name identifies it in messages, such as "MachineDeployment fleet/md-0".
	Name string
	Type
}

// inline returns the entries of spec.instanceTypes, in their order.
func inline(template *v1alpha1.KarpenterMachineTemplate) ([]Source, []Problem) {
	return fitting(template, &template.Spec.InstanceTypeSet, "spec", func(i int) string { return fmt.Sprintf("spec.instanceTypes[%d]", i) })
}

// ofCatalog returns the entries of an InstanceTypeCatalog, in their order.
func ofCatalog(template *v1alpha1.KarpenterMachineTemplate, catalog *v1alpha1.InstanceTypeCatalog) ([]Source, []Problem) {
	name := v1alpha1.CatalogKind + " " + catalog.Name
	sources, problems := fitting(template, &catalog.Spec.InstanceTypeSet, name, func(int) string { return name })
	for _, source := range sources {
		for i := range source.Offerings {
			if o := &source.Offerings[i]; o.MaxMachines != nil {
				o.Limiter = &Limiter{Catalog: catalog.Name}
			}
		}
	}
	return sources, problems
}

// fitting returns the entries of a list that can be used with a template.
func fitting(template *v1alpha1.KarpenterMachineTemplate, set *v1alpha1.InstanceTypeSet, where string, nameOf func(int) string) ([]Source, []Problem) {
	if err := checkSize(set); err != nil {
		return nil, []Problem{{v1alpha1.ReasonTooManyOfferings, where + ": " + err.Error()}}
	}
	prices, err := pricesOf(set.Pricing)
	if err != nil {
		return nil, []Problem{{v1alpha1.ReasonInstanceTypesInvalid, where + ": " + err.Error()}}
	}
	sources := make([]Source, 0, len(set.InstanceTypes))
	var problems []Problem
	for i := range set.InstanceTypes {
		given := &set.InstanceTypes[i]
		found, err := typeOf(set, given, prices)
		if err == nil && given.InfrastructureRef == nil && template.Spec.Template.Spec.InfrastructureRef == nil && template.Spec.Template.From == nil {
			err = errors.New("infrastructureRef: set it here or in spec.template.spec, because machines are generated from it")
		}
		if err == nil {
			err = usable(found.Capacity, template.Spec.Kubelet)
		}
		if err != nil {
			problems = append(problems, Problem{v1alpha1.ReasonInstanceTypesInvalid, fmt.Sprintf("%s (%s): %s", nameOf(i), given.Name, err)})
			continue
		}
		sources = append(sources, Source{Name: nameOf(i), Type: found})
	}
	return sources, problems
}

// usable returns an error for a capacity that no machine can have, or that is less than
// the kubelet reserves.
func usable(capacity corev1.ResourceList, kubelet *v1alpha1.KubeletConfiguration) error {
	if err := checkCapacity(capacity); err != nil {
		return err
	}
	kubelet = KubeletOf(kubelet, capacity)
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
