// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/samber/lo"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// maxScalableResources is the CRD's bound of status.scalableResources.
const maxScalableResources = 1000

// setScalableResources tells of what was generated from the template.
func (r *Reconciler) setScalableResources(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) error {
	list := &clusterv1.MachineDeploymentList{}
	if err := r.clusters.Management.GetClient().List(ctx, list, client.MatchingLabels{v1alpha1.TemplateLabel: template.Name}); err != nil {
		return fmt.Errorf("listing the MachineDeployments of KarpenterMachineTemplate %s: %w", template.Name, err)
	}
	var machines int32
	resources := make([]v1alpha1.ScalableResourceStatus, 0, len(list.Items))
	for i := range list.Items {
		resource := &list.Items[i]
		offering := scalable.OfferingOf(resource)
		rollingOut, err := scalable.IsRollingOut(ctx, r.clusters, resource)
		if err != nil {
			return err
		}
		machines += lo.FromPtr(resource.Status.Replicas)
		resources = append(resources, v1alpha1.ScalableResourceStatus{
			Name:          resource.Name,
			Kind:          v1alpha1.ScalableResourceKindMachineDeployment,
			InstanceType:  offering.InstanceType,
			Zone:          offering.Zone,
			CapacityType:  offering.CapacityType,
			Paused:        scalable.ResourcePaused(resource) || rollingOut,
			Replicas:      lo.FromPtr(resource.Spec.Replicas),
			ReadyReplicas: lo.FromPtr(resource.Status.ReadyReplicas),
		})
	}
	slices.SortFunc(resources, func(a, b v1alpha1.ScalableResourceStatus) int { return cmp.Compare(a.Name, b.Name) })
	template.Status.Machines = machines
	template.Status.ScalableResources = resources[:min(len(resources), maxScalableResources)]
	return nil
}
