// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/budget"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// maxScalableResources is the maximum of status.scalableResources in the CRD.
const maxScalableResources = 1000

// setScalableResources sets the scalable resources of the template, and the number of Machines.
func (r *Reconciler) setScalableResources(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) error {
	list, err := scalable.List(ctx, r.clusters, client.MatchingLabels{v1alpha1.TemplateLabel: template.Name})
	if err != nil {
		return fmt.Errorf("KarpenterMachineTemplate %s: %w", template.Name, err)
	}
	var machines int32
	resources := make([]v1alpha1.ScalableResourceStatus, 0, len(list))
	for _, resource := range list {
		offering := scalable.OfferingOf(resource)
		paused, err := resource.Suspended(ctx, r.clusters)
		if err != nil {
			return err
		}
		all, ready := resource.Machines()
		machines += all
		resources = append(resources, v1alpha1.ScalableResourceStatus{
			Name:          resource.GetName(),
			Kind:          resource.Kind().Name(),
			InstanceType:  offering.InstanceType,
			Zone:          offering.Zone,
			CapacityType:  offering.CapacityType,
			Paused:        paused,
			Replicas:      resource.Replicas(),
			ReadyReplicas: ready,
		})
	}
	template.Status.Machines = machines
	template.Status.ScalableResources = listed(resources)
	return nil
}

// listed returns the resources for which the status has room, by name. If there are too many,
// it prefers those that are paused, whose offerings Karpenter must not choose, and then those
// whose replicas are not all ready.
func listed(resources []v1alpha1.ScalableResourceStatus) []v1alpha1.ScalableResourceStatus {
	rank := func(r v1alpha1.ScalableResourceStatus) int {
		switch {
		case r.Paused:
			return 0
		case r.Replicas != r.ReadyReplicas:
			return 1
		default:
			return 2
		}
	}
	byName := func(a, b v1alpha1.ScalableResourceStatus) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(resources, func(a, b v1alpha1.ScalableResourceStatus) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), byName(a, b))
	})
	resources = resources[:min(maxScalableResources, budget.Fit(resources, budget.Resources))]
	slices.SortFunc(resources, byName)
	return resources
}
