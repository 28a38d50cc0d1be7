// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"context"
	"fmt"
	"reflect"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
	"github.com/karpenter-capi/karpenter-capi/internal/patch"
)

// Generated is what is made for one offering.
type Generated struct {
	// MachineDeployment without replicas.
	MachineDeployment *clusterv1.MachineDeployment
	// Templates are the copies of base templates that it refers to. A base that
	// nothing changes is referred to itself.
	Templates []*unstructured.Unstructured

	// asTheyAre are the specs of bases that nothing changes. They shape the Machines as
	// copies do, whose names tell what they are.
	asTheyAre []any
}

// Generator makes scalable resources from one revision of a template. It is pure,
// and for one goroutine at a time.
type Generator struct {
	cluster  types.NamespacedName
	template *v1alpha1.KarpenterMachineTemplate
	patches  patch.Patches
	bases    map[v1alpha1.PatchTarget]*base
}

// base is a base template, and its copies by what was done to it.
type base struct {
	object *unstructured.Unstructured
	spec   map[string]any
	copies map[string]*unstructured.Unstructured
}

// GeneratorFor returns the generator for a template, with the bases that the cache of
// the management cluster has.
func GeneratorFor(ctx context.Context, clusters *operator.Clusters, template *v1alpha1.KarpenterMachineTemplate) (*Generator, error) {
	bases, err := ReadBases(ctx, clusters, template)
	if err != nil {
		return nil, err
	}
	return NewGenerator(clusters.Cluster, template, bases)
}

// NewGenerator returns the generator for a template in the served Cluster. The error
// names what is wrong for all offerings: a patch that can never be applied, or a
// bootstrap template that is not what its kind should be.
func NewGenerator(cluster types.NamespacedName, template *v1alpha1.KarpenterMachineTemplate, bases Bases) (*Generator, error) {
	patches, err := patch.Compile(template.Spec.Patches)
	if err != nil {
		return nil, fmt.Errorf("KarpenterMachineTemplate %s: %w", template.Name, err)
	}
	g := &Generator{cluster: cluster, template: template, patches: patches, bases: map[v1alpha1.PatchTarget]*base{}}
	for target, object := range map[v1alpha1.PatchTarget]*unstructured.Unstructured{
		v1alpha1.PatchTargetInfrastructure: bases.Infrastructure,
		v1alpha1.PatchTargetBootstrap:      bases.Bootstrap,
	} {
		if object == nil {
			continue
		}
		spec, _, err := unstructured.NestedMap(object.Object, "spec")
		if err != nil {
			return nil, fmt.Errorf("%s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
		}
		g.bases[target] = &base{object: object, spec: spec, copies: map[string]*unstructured.Unstructured{}}
	}
	if b := g.bases[v1alpha1.PatchTargetBootstrap]; b != nil && b.object.GroupVersionKind().GroupKind() == kubeadmTemplate {
		if err := joinTainted(b.object.GroupVersionKind().Version, b.spec, template.Spec.Kubelet); err != nil {
			return nil, fmt.Errorf("%s %s/%s: %w", b.object.GetKind(), b.object.GetNamespace(), b.object.GetName(), err)
		}
	}
	return g, nil
}

// Generate returns what is made for an offering. Names and the template hash depend
// on nothing but what shapes the Machines: a price, for one, does not.
//
// It fails if there is no infrastructure for the offering, or patches cannot be
// applied for it.
func (g *Generator) Generate(instanceType *catalog.Type, offering *catalog.Offering) (*Generated, error) {
	variables := g.variables(instanceType, offering)
	var err error
	generated := &Generated{}
	machine := clusterv1.MachineSpec{
		Bootstrap:     *g.template.Spec.Template.Spec.Bootstrap.DeepCopy(),
		FailureDomain: offering.FailureDomain,
	}
	switch base := g.bases[v1alpha1.PatchTargetInfrastructure]; {
	case offering.InfrastructureRef != nil:
		machine.InfrastructureRef = *offering.InfrastructureRef
	case base == nil:
		return nil, fmt.Errorf("KarpenterMachineTemplate %s: instance type %s has no infrastructureRef and template.spec has none either", g.template.Name, instanceType.Name)
	default:
		if machine.InfrastructureRef, err = g.refer(generated, v1alpha1.PatchTargetInfrastructure, variables); err != nil {
			return nil, err
		}
	}
	if g.bases[v1alpha1.PatchTargetBootstrap] != nil {
		if machine.Bootstrap.ConfigRef, err = g.refer(generated, v1alpha1.PatchTargetBootstrap, variables); err != nil {
			return nil, err
		}
	}
	generated.MachineDeployment = g.machineDeployment(instanceType.KeyOf(offering), machine, generated.asTheyAre)
	return generated, nil
}

// templateOf returns a base, or its copy if that is changed for the offering.
func (g *Generator) templateOf(target v1alpha1.PatchTarget, variables patch.Variables) (*unstructured.Unstructured, error) {
	operations, err := g.patches.Render(target, variables)
	if err != nil {
		return nil, fmt.Errorf("KarpenterMachineTemplate %s: %w", g.template.Name, err)
	}
	b := g.bases[target]
	if object, known := b.copies[operations.Key()]; known {
		return object, nil
	}
	object, spec := b.object, b.spec
	if !operations.Empty() {
		if spec, err = operations.Apply(b.spec); err != nil {
			return nil, fmt.Errorf("KarpenterMachineTemplate %s: %w, %s %s", g.template.Name, err, b.object.GetKind(), b.object.GetName())
		}
	}
	if !reflect.DeepEqual(spec, b.object.Object["spec"]) {
		object = g.copyOf(b.object, spec)
	}
	b.copies[operations.Key()] = object
	return object, nil
}

// refer returns the reference to a base or, if that is changed for the offering, to
// its copy, which is then part of what is generated.
func (g *Generator) refer(generated *Generated, target v1alpha1.PatchTarget, variables patch.Variables) (clusterv1.ContractVersionedObjectReference, error) {
	object, err := g.templateOf(target, variables)
	if err != nil {
		return clusterv1.ContractVersionedObjectReference{}, err
	}
	if object == g.bases[target].object {
		generated.asTheyAre = append(generated.asTheyAre, object.Object["spec"])
	} else {
		generated.Templates = append(generated.Templates, object.DeepCopy())
	}
	kind := object.GroupVersionKind()
	return clusterv1.ContractVersionedObjectReference{APIGroup: kind.Group, Kind: kind.Kind, Name: object.GetName()}, nil
}

// variables returns what Go templates in patches can use.
func (g *Generator) variables(instanceType *catalog.Type, offering *catalog.Offering) patch.Variables {
	labels := instanceType.NodeLabels()
	return patch.Variables{
		InstanceType:      instanceType.Name,
		Zone:              offering.Zone,
		FailureDomain:     offering.FailureDomain,
		CapacityType:      offering.CapacityType,
		ReservationID:     lo.FromPtr(offering.Reservation).ID,
		Region:            labels[corev1.LabelTopologyRegion],
		Architecture:      labels[corev1.LabelArchStable],
		OperatingSystem:   labels[corev1.LabelOSStable],
		Labels:            labels,
		ClusterName:       g.cluster.Name,
		KubernetesVersion: g.template.Spec.Template.Spec.Version,
		TemplateName:      g.template.Name,
	}
}
