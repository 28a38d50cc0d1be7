// SPDX-License-Identifier: Apache-2.0

package tenancy

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Adoption returns a NotAllowed error if templates may not use a MachineDeployment that exists: if the management side
// has not given its consent, or if it has base templates that templates may not refer to. That its base templates
// can belong to other Clusters is a matter of the management side.
func (r Rules) Adoption(deployment *clusterv1.MachineDeployment) error {
	if deployment.Annotations[v1alpha1.AdoptableAnnotation] != "true" {
		return notAllowed(v1alpha1.ReasonAdoptionNotAllowed, `templates may not use it, because only a user of the management cluster can allow that: give it the annotation %s: "true", or change the selector`,
			v1alpha1.AdoptableAnnotation)
	}
	if len(r.BaseTemplates) == 0 {
		return nil
	}
	spec := deployment.Spec.Template.Spec
	for _, ref := range []clusterv1.ContractVersionedObjectReference{spec.InfrastructureRef, spec.Bootstrap.ConfigRef} {
		if ref.IsDefined() && !r.baseNamed(ref.GroupKind(), ref.Name) {
			return r.baseNotAllowed(ref.GroupKind(), ref.Name)
		}
	}
	return nil
}

// baseNotAllowed returns the error for a base template that is not in the list.
func (r Rules) baseNotAllowed(kind schema.GroupKind, name string) error {
	return notAllowed(v1alpha1.ReasonBaseTemplateNotAllowed, "%s %s is not among the base templates that templates may refer to (%s): name one of these, or add %[1]s/%[2]s to the operator's --allowed-base-templates",
		kind.Kind, name, r.basesText())
}
