// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"maps"

	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/hash"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// setMachineDeployment sets the MachineDeployment for an offering, and the copies of templates
// that it refers to.
func (g *Generator) setMachineDeployment(generated *Generated, key catalog.Key, offering *catalog.Offering, infrastructure, bootstrap *unstructured.Unstructured) {
	machine := g.machine()
	machine.FailureDomain = offering.FailureDomain
	machine.InfrastructureRef = referenceTo(infrastructure)
	if bootstrap != nil {
		machine.Bootstrap.ConfigRef = referenceTo(bootstrap)
	}
	// asTheyAre are the specs of bases that do not change. They are part of the hash,
	// because the names of bases, unlike those of copies, do not depend on their content.
	var asTheyAre []any
	for _, object := range lo.Compact([]*unstructured.Unstructured{infrastructure, bootstrap}) {
		if g.isCopy(object) {
			generated.Objects = append(generated.Objects, object.DeepCopy())
		} else {
			asTheyAre = append(asTheyAre, object.Object["spec"])
		}
	}
	content := hash.Of(hash.Resource, g.template.Name, key, rolled(machine), generated.Hashes.Kubelet, asTheyAre)
	generated.Resource = scalable.New(g.newMachineDeployment(g.nameOf(content, key, generated.ending), content, key, machine))
}

func (g *Generator) newMachineDeployment(name, content string, key catalog.Key, machine clusterv1.MachineSpec) *clusterv1.MachineDeployment {
	cluster, template := g.cluster, g.template
	labels := g.labelsOf(content, key)
	// Cluster API's webhook would add these labels (core/webhooks/admission/
	// machinedeployment.go). Set here, they are the same before and after the creation.
	selector := map[string]string{
		clusterv1.ClusterNameLabel:           cluster.Name,
		clusterv1.MachineDeploymentNameLabel: name,
	}
	metadata := g.metadata(name, labels)
	// Cluster API's controller adds it in a reconcile that does nothing else, and then waits a second before the next one
	// (core/reconcilers/machinedeployment/machinedeployment_controller.go, EnsureFinalizer). So the first Machine of an
	// offering exists a second earlier. It always runs, unlike that of MachinePools, which would leave them for ever.
	metadata.Finalizers = []string{clusterv1.MachineDeploymentFinalizer}
	return &clusterv1.MachineDeployment{
		ObjectMeta: metadata,
		Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: cluster.Name,
			Selector:    metav1.LabelSelector{MatchLabels: selector},
			// Nothing is ever rolled out. If a user changes the template of a generated
			// MachineDeployment, OnDelete keeps its Machines.
			Rollout: clusterv1.MachineDeploymentRolloutSpec{Strategy: clusterv1.MachineDeploymentRolloutStrategy{
				Type: clusterv1.OnDeleteMachineDeploymentStrategyType,
			}},
			Deletion: clusterv1.MachineDeploymentDeletionSpec{Order: clusterv1.NewestMachineSetDeletionOrder},
			Template: clusterv1.MachineTemplateSpec{
				ObjectMeta: clusterv1.ObjectMeta{
					Labels:      lo.Assign(template.Spec.Template.Metadata.LabelStrings(), labels, selector),
					Annotations: maps.Clone(template.Spec.Template.Metadata.Annotations),
				},
				Spec: machine,
			},
		},
	}
}
