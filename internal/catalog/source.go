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

// Source is one description of an instance type: an entry of an InstanceTypeCatalog, or a
// discovered object.
type Source struct {
	// Name identifies it in messages, such as "MachineDeployment fleet/md-0".
	Name string
	// Listed reports whether a catalog has it.
	Listed bool
	Type
}

// ofCatalog returns the instance types of an InstanceTypeCatalog that a template can use, in their
// order, and what is wrong with the others.
func ofCatalog(template *v1alpha1.KarpenterMachineTemplate, catalog *v1alpha1.InstanceTypeCatalog) ([]Source, []Problem) {
	name := v1alpha1.CatalogKind + " " + catalog.Name
	sources := make([]Source, 0, len(catalog.Spec.InstanceTypes))
	var problems []Problem
	_, err := eachType(&catalog.Spec, func(given *v1alpha1.InstanceType, found Type, err error) {
		if err == nil && given.InfrastructureRef == nil && template.Spec.Template.Spec.InfrastructureRef == nil && template.Spec.Template.From == nil {
			err = errors.New("infrastructureRef: set it here or in spec.template.spec of the template, because machines are generated from it")
		}
		if err == nil {
			err = usable(found.Capacity, template.Spec.Kubelet)
		}
		if err != nil {
			problems = append(problems, Problem{v1alpha1.ReasonInstanceTypesInvalid, fmt.Sprintf("%s (%s): %s", name, given.Name, err)})
			return
		}
		for i := range found.Offerings {
			if o := &found.Offerings[i]; o.MaxMachines != nil {
				o.Limiter = &Limiter{Catalog: catalog.Name}
			}
		}
		sources = append(sources, Source{Name: name, Listed: true, Type: found})
	})
	if err != nil {
		return nil, []Problem{{ReasonOf(err), name + ": " + err.Error()}}
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
