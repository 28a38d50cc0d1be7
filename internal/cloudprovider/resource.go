// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// resource returns the annotations of a claim that name the scalable resource of its
// offering: the adopted one that makes its Machines, or the one that is generated.
func (c *CloudProvider) resource(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate, instanceType *catalog.Type, offering *catalog.Offering) (map[string]string, error) {
	if offering.MachineDeployment != "" {
		return map[string]string{v1alpha1.ScalableResourceAnnotation: offering.MachineDeployment}, nil
	}
	generator, err := scalable.GeneratorFor(ctx, c.clusters, template)
	if err != nil {
		return nil, err
	}
	generated, err := generator.Generate(instanceType, offering)
	if err != nil {
		return nil, err
	}
	return map[string]string{
		v1alpha1.ScalableResourceAnnotation: generated.Resource.GetName(),
		v1alpha1.TemplateHashAnnotation:     generated.Resource.GetLabels()[v1alpha1.TemplateHashLabel],
	}, nil
}
