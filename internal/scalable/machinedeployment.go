// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"context"
	"fmt"
	"time"

	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
	"github.com/karpenter-capi/karpenter-capi/internal/patch"
)

// machineDeployments is the Kind of MachineDeployments. What acts on their replicas are
// MachineSets, see machineset.go.
type machineDeployments struct{}

// Name returns the name of the kind.
func (machineDeployments) Name() v1alpha1.ScalableResourceKind {
	return v1alpha1.ScalableResourceKindMachineDeployment
}

func (machineDeployments) empty() (client.Object, client.ObjectList) {
	return &clusterv1.MachineDeployment{}, &clusterv1.MachineDeploymentList{}
}

func (machineDeployments) fields(object client.Object) fields {
	deployment := object.(*clusterv1.MachineDeployment)
	return fields{
		replicas: deployment.Spec.Replicas, template: &deployment.Spec.Template,
		machines: deployment.Status.Replicas, ready: deployment.Status.ReadyReplicas,
		paused: lo.FromPtr(deployment.Spec.Paused),
	}
}

func (machineDeployments) setReplicas(object client.Object, replicas int32, _ time.Time) {
	object.(*clusterv1.MachineDeployment).Spec.Replicas = &replicas
}

// Accepts demands a template of single machines.
func (machineDeployments) Accepts(base *unstructured.Unstructured, _ v1alpha1.ScalableResource) error {
	switch err := IsTemplate(base); {
	case err != nil:
		return err
	case makesPools(base.GetKind()):
		return fmt.Errorf("%s %s is for MachinePools: name a template of machines, or set spec.scalableResource.kind to MachinePool", base.GetKind(), client.ObjectKeyFromObject(base))
	}
	return nil
}

// MadeOf returns the same kind: a template is copied.
func (machineDeployments) MadeOf(base schema.GroupVersionKind) schema.GroupVersionKind { return base }

// Shares is true: copies are named by their content.
func (machineDeployments) Shares() bool { return true }

func (machineDeployments) hold(*clusterv1.Machine) {}

func (machineDeployments) unusable(context.Context, *operator.Clusters, *Resource) (string, error) {
	return "", nil
}

// generate returns the MachineDeployment for an offering, and the copies of templates
// that it refers to.
func (machineDeployments) generate(g *Generator, key catalog.Key, offering *catalog.Offering, variables patch.Variables) (*Generated, error) {
	generated := &Generated{}
	// asTheyAre are the specs of bases that nothing changes. They shape the Machines as
	// copies do, whose names tell what they are.
	var asTheyAre []any
	machine := g.machine()
	machine.FailureDomain = offering.FailureDomain
	refer := func(ref *clusterv1.ContractVersionedObjectReference, target v1alpha1.PatchTarget) error {
		object, err := g.templateOf(target, variables)
		if err != nil {
			return err
		}
		if object == g.bases[target].object {
			asTheyAre = append(asTheyAre, object.Object["spec"])
		} else {
			generated.Objects = append(generated.Objects, object.DeepCopy())
		}
		*ref = referenceTo(object)
		return nil
	}
	if offering.InfrastructureRef != nil {
		machine.InfrastructureRef = *offering.InfrastructureRef
	} else if err := refer(&machine.InfrastructureRef, v1alpha1.PatchTargetInfrastructure); err != nil {
		return nil, err
	}
	if g.bases[v1alpha1.PatchTargetBootstrap] != nil {
		if err := refer(&machine.Bootstrap.ConfigRef, v1alpha1.PatchTargetBootstrap); err != nil {
			return nil, err
		}
	}
	hash := HashOf(g.template.Name, key, g.template.Spec.Template.Metadata, machine, g.template.Spec.Kubelet, asTheyAre)
	generated.Resource = resourceOf(machineDeployments{}, g.machineDeployment(hash, key, machine))
	return generated, nil
}

func (g *Generator) machineDeployment(hash string, key catalog.Key, machine clusterv1.MachineSpec) *clusterv1.MachineDeployment {
	cluster, template := g.cluster, g.template
	name, labels := g.nameOf(hash, key), g.labelsOf(hash, key)
	// Cluster API's webhook would add these itself (core/webhooks/admission/
	// machinedeployment.go); set here, what is created is what is stored.
	selector := map[string]string{
		clusterv1.ClusterNameLabel:           cluster.Name,
		clusterv1.MachineDeploymentNameLabel: name,
	}
	return &clusterv1.MachineDeployment{
		ObjectMeta: g.metadata(name, labels),
		Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: cluster.Name,
			Selector:    metav1.LabelSelector{MatchLabels: selector},
			// Nothing is ever rolled out. Should anybody change the template of a
			// generated MachineDeployment, OnDelete keeps its Machines where they are.
			Rollout: clusterv1.MachineDeploymentRolloutSpec{Strategy: clusterv1.MachineDeploymentRolloutStrategy{
				Type: clusterv1.OnDeleteMachineDeploymentStrategyType,
			}},
			Deletion: clusterv1.MachineDeploymentDeletionSpec{Order: clusterv1.NewestMachineSetDeletionOrder},
			Template: clusterv1.MachineTemplateSpec{
				ObjectMeta: clusterv1.ObjectMeta{
					Labels:      lo.Assign(template.Spec.Template.Metadata.Labels, labels, selector),
					Annotations: lo.Assign(template.Spec.Template.Metadata.Annotations, map[string]string{v1alpha1.DrainHookAnnotation: ""}),
				},
				Spec: machine,
			},
		},
	}
}
