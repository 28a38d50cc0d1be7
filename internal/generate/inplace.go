// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/api/equality"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/hash"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// ownLabels are the labels of generated Machines that do not come from template.metadata.
var ownLabels = []string{
	v1alpha1.TemplateLabel, v1alpha1.InstanceTypeLabel, v1alpha1.ZoneLabel, v1alpha1.CapacityTypeLabel, v1alpha1.TemplateHashLabel,
	clusterv1.ClusterNameLabel, clusterv1.MachineDeploymentNameLabel,
}

// InPlace sets on a generated resource what its template describes now and what replaces no Machine:
// annotations of the resource itself, and labels, annotations, deletion timeouts, readiness gates and
// minReadySeconds of its Machines. Cluster API passes them on to existing Machines of a
// MachineDeployment (Cluster API: core/reconcilers/machinedeployment/mdutil/util.go,
// MachineTemplateDeepCopyRolloutFields), and labels and annotations to those of a MachinePool
// (core/reconcilers/machinepool/machinepool_controller_phases.go, computeDesiredMachine). They are not
// part of the name of the resource.
//
// The settings of Machines are set only if the template has others than when they were last set. A
// webhook that adds defaults or labels would otherwise be answered with another write each time.
func InPlace(resource *scalable.Resource, template *v1alpha1.KarpenterMachineTemplate) {
	settings, wanted := template.Spec.Template, inPlaceHash(template)
	resource.SetAnnotations(WithTemplateAnnotations(resource.GetAnnotations(), template.Spec.ScalableResource.Annotations))
	applied, known := resource.GetAnnotations()[v1alpha1.InPlaceHashAnnotation]
	if applied == wanted {
		return
	}
	machines := resource.MachineTemplate()
	before := machines.DeepCopy()
	machines.Labels = lo.Assign(settings.Metadata.LabelStrings(), lo.PickByKeys(machines.Labels, ownLabels))
	machines.Annotations = lo.Assign(settings.Metadata.Annotations)
	setInPlace(&machines.Spec, settings.Spec)
	if known || !equality.Semantic.DeepEqual(before, machines) {
		resource.SetAnnotations(lo.Assign(resource.GetAnnotations(), map[string]string{v1alpha1.InPlaceHashAnnotation: wanted}))
	}
}

// inPlaceHash returns the hash of a template's settings of Machines that are changed in place.
func inPlaceHash(template *v1alpha1.KarpenterMachineTemplate) string {
	var machine clusterv1.MachineSpec
	setInPlace(&machine, template.Spec.Template.Spec)
	return hash.Of(hash.InPlace, template.Spec.Template.Metadata, machine)
}

// setInPlace sets the fields of a Machine that Cluster API changes in place.
func setInPlace(machine *clusterv1.MachineSpec, settings v1alpha1.MachineTemplateSpec) {
	settings = *settings.DeepCopy()
	machine.MinReadySeconds = settings.MinReadySeconds
	machine.ReadinessGates = settings.ReadinessGates
	machine.Deletion = lo.FromPtr(settings.Deletion)
}
