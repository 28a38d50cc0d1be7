// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// resource returns the annotations of a claim that name the scalable resource of its
// offering: the adopted one that makes its Machines, or the one that is generated.
func (c *CloudProvider) resource(template *v1alpha1.KarpenterMachineTemplate, instanceType *catalog.Type, offering *catalog.Offering) (map[string]string, error) {
	if offering.MachineDeployment != "" {
		return map[string]string{v1alpha1.ScalableResourceAnnotation: offering.MachineDeployment}, nil
	}
	key := instanceType.KeyOf(offering)
	resource, err := scalable.MachineDeployment(c.clusters.Cluster, only(template, key, offering), scalable.Offering(key))
	if err != nil {
		return nil, err
	}
	return map[string]string{
		v1alpha1.ScalableResourceAnnotation: resource.Name,
		v1alpha1.TemplateHashAnnotation:     resource.Labels[v1alpha1.TemplateHashLabel],
	}, nil
}

// only returns a template whose spec.instanceTypes is the one offering, so that one
// that was discovered is generated as one that is given there.
func only(template *v1alpha1.KarpenterMachineTemplate, key catalog.Key, offering *catalog.Offering) *v1alpha1.KarpenterMachineTemplate {
	result := *template
	result.Spec.InstanceTypes = []v1alpha1.InstanceType{{
		Name:              key.InstanceType,
		InfrastructureRef: offering.InfrastructureRef,
		Offerings:         []v1alpha1.Offering{{Zone: key.Zone, CapacityType: v1alpha1.CapacityType(key.CapacityType)}},
	}}
	return &result
}
