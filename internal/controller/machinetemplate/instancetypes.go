// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"

	"github.com/samber/lo"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// maxMessage keeps a condition's message within what the CRD takes.
const maxMessage = 4096

// setInstanceTypesReady counts what is on offer, and tells what cannot be.
func (r *Reconciler) setInstanceTypesReady(_ context.Context, template *v1alpha1.KarpenterMachineTemplate) error {
	conditions := template.StatusConditions()
	instanceTypes, err := r.catalog.InstanceTypes(template, r.clock.Now())
	template.Status.InstanceTypes = int32(len(instanceTypes))
	template.Status.Offerings = int32(lo.SumBy(instanceTypes, func(it *cloudprovider.InstanceType) int { return len(it.Offerings) }))
	switch {
	case err != nil:
		conditions.SetFalse(v1alpha1.ConditionInstanceTypesReady, v1alpha1.ReasonInstanceTypesInvalid, lo.Substring(err.Error(), 0, maxMessage))
	case len(instanceTypes) == 0:
		conditions.SetFalse(v1alpha1.ConditionInstanceTypesReady, v1alpha1.ReasonNoInstanceTypes,
			"spec.instanceTypes is empty: add the instance types that Karpenter may choose from")
	default:
		conditions.SetTrue(v1alpha1.ConditionInstanceTypesReady)
	}
	return nil
}
