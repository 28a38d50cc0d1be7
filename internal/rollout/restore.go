// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/api/equality"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Restored is the part of a template's spec that a rollback restores: what shapes machines. The rest is changed in place, or
// decides only what is offered.
type Restored struct {
	Kind              v1alpha1.ScalableResourceKind               `json:"kind,omitempty"`
	Version           string                                      `json:"version,omitempty"`
	Bootstrap         clusterv1.Bootstrap                         `json:"bootstrap,omitempty,omitzero"`
	InfrastructureRef *clusterv1.ContractVersionedObjectReference `json:"infrastructureRef,omitempty"`
	Patches           []v1alpha1.Patch                            `json:"patches,omitempty"`
	Kubelet           *v1alpha1.KubeletConfiguration              `json:"kubelet,omitempty"`
}

// Restorable returns the part of the present spec of a template.
func Restorable(template *v1alpha1.KarpenterMachineTemplate) Restored {
	machine := template.Spec.Template.Spec
	return Restored{
		Kind: template.Spec.ScalableResource.Kind, Version: machine.Version, Bootstrap: machine.Bootstrap, InfrastructureRef: machine.InfrastructureRef,
		Patches: template.Spec.Patches, Kubelet: template.Spec.Kubelet,
	}
}

// Undo sets the spec of a template to what ran before: the latest spec in the history of its rollout that differs. It never
// restores an earlier one, as if what ran before is unknown or differs only in the content of base templates.
func Undo(template *v1alpha1.KarpenterMachineTemplate) error {
	if template.Spec.Template.From != nil {
		return errors.New("the template follows a MachineDeployment: undo the change there")
	}
	present, current := Restorable(template), lo.FromPtr(template.Status.Rollout)
	for _, revision := range current.History {
		if revision.Spec == nil {
			break
		}
		var before Restored
		if err := json.Unmarshal(revision.Spec.Raw, &before); err != nil {
			return fmt.Errorf("reading status.rollout.history: %w", err)
		}
		if !equality.Semantic.DeepEqual(before, present) {
			restore(&template.Spec, before)
			return nil
		}
		if revision.Revision != current.Revision {
			break
		}
	}
	return errors.New("status.rollout.history does not have the spec from before: undo the change of the template or of its base templates by hand")
}

func restore(spec *v1alpha1.KarpenterMachineTemplateSpec, before Restored) {
	spec.ScalableResource.Kind, spec.Patches, spec.Kubelet = before.Kind, before.Patches, before.Kubelet
	machine := &spec.Template.Spec
	machine.Version, machine.Bootstrap, machine.InfrastructureRef = before.Version, before.Bootstrap, before.InfrastructureRef
}
