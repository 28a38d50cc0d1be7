// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// setInfrastructureReady tells whether all infrastructure templates exist that the
// template names. What it discovers exists.
func (r *Reconciler) setInfrastructureReady(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) error {
	conditions := template.StatusConditions()
	type reference struct {
		field string
		ref   clusterv1.ContractVersionedObjectReference
	}
	var references []reference
	if ref := template.Spec.Template.Spec.InfrastructureRef; ref != nil {
		references = append(references, reference{"spec.template.spec.infrastructureRef", *ref})
	}
	for i, instanceType := range template.Spec.InstanceTypes {
		if instanceType.InfrastructureRef != nil {
			references = append(references, reference{fmt.Sprintf("spec.instanceTypes[%d].infrastructureRef", i), *instanceType.InfrastructureRef})
		}
	}
	if len(references) == 0 && template.Spec.Discovery == nil {
		conditions.SetFalse(v1alpha1.ConditionInfrastructureReady, v1alpha1.ReasonReferenceMissing,
			"spec.template.spec.infrastructureRef is not set, and no instance type has an infrastructureRef of its own: name an infrastructure machine template")
		return nil
	}
	seen := map[clusterv1.ContractVersionedObjectReference]bool{}
	for _, reference := range references {
		if seen[reference.ref] {
			continue
		}
		seen[reference.ref] = true
		problem, err := r.resolve(ctx, reference.ref)
		if err != nil {
			return err
		}
		if problem != nil {
			conditions.SetFalse(v1alpha1.ConditionInfrastructureReady, problem.reason, reference.field+": "+problem.message)
			return nil
		}
	}
	conditions.SetTrue(v1alpha1.ConditionInfrastructureReady)
	return nil
}
