// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/budget"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/patch"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/tenancy"
	"github.com/karpenter-capi/karpenter-capi/internal/version"
)

// Generated has the objects that are generated for one offering.
type Generated struct {
	// Resource is the scalable resource, without replicas.
	Resource *scalable.Resource
	// Objects are the objects that are generated from base templates and that the resource
	// refers to: copies, or a machine pool and its bootstrap configuration. A
	// MachineDeployment refers directly to a base that does not change.
	Objects []*unstructured.Unstructured
	// Hashes are of what shapes the Machines.
	Hashes Hashes

	// ending is the resource that is being deleted and would have the same name; empty if there is none.
	ending types.UID
}

// Generator generates scalable resources from one revision of a template. It is pure. Only
// one goroutine can use it at a time.
type Generator struct {
	cluster  types.NamespacedName
	template *v1alpha1.KarpenterMachineTemplate
	kind     scalable.Kind
	version  version.Version
	// followed is the name of the MachineDeployment that the template follows; empty if it follows none.
	followed string
	patches  patch.Patches
	bases    map[v1alpha1.PatchTarget]*base
	allowed  tenancy.Allowed
	byRef    func(clusterv1.ContractVersionedObjectReference) (*unstructured.Unstructured, error)
	// referred are the templates that byRef has returned, because many offerings refer to the same.
	referred map[clusterv1.ContractVersionedObjectReference]*unstructured.Unstructured
}

// base is a base template with what was generated from it, by the patch operations that were applied
// and the arguments of the kubelet.
type base struct {
	object    *unstructured.Unstructured
	spec      map[string]any
	generated map[string]patched
	// joins reports whether the operator adds to the spec how Nodes join.
	joins bool
	// size is the number of bytes of the spec as JSON, once something was generated from it, and room that of what still
	// can be.
	size, room int
}

// maxGenerated is how many bytes can be generated from one base for the offerings of a template. The largest regions of the
// clouds have 800 instance types, and templates of a few KiB. Without a limit, patches that are another text for each of
// 50,000 offerings would exhaust the memory of the operator.
const maxGenerated = 64 << 20

// take takes from the room what one more copy of the base with patches of a length needs; false if it has none.
func (b *base) take(patches int) bool {
	if b.size == 0 {
		b.size = budget.Size(b.spec)
	}
	b.room -= b.size + patches
	return b.room >= 0
}

// patched is what patches have made of a base for an offering.
type patched struct {
	// object is a copy, or the base itself if nothing changes it.
	object *unstructured.Unstructured
	// spec is that of the object without what the operator adds after the patches.
	spec map[string]any
}

// GeneratorFor returns the generator for a template, with the bases that the cache of
// the management cluster has.
func GeneratorFor(ctx context.Context, clusters *clients.Clusters, template *v1alpha1.KarpenterMachineTemplate) (*Generator, error) {
	bases, err := ReadBases(ctx, clusters, template)
	if err != nil {
		return nil, err
	}
	return NewGenerator(clusters.Cluster, template, bases)
}

// NewGenerator returns the generator for a template in the served Cluster. It returns an
// error for problems of all offerings, such as a patch that can never be applied.
func NewGenerator(cluster types.NamespacedName, template *v1alpha1.KarpenterMachineTemplate, bases Bases) (*Generator, error) {
	if err := bases.Allowed.Metadata(&template.Spec); err != nil {
		return nil, fmt.Errorf("KarpenterMachineTemplate %s: %w", template.Name, err)
	}
	patches, err := patch.Compile(template.Spec.Patches)
	if err != nil {
		return nil, fmt.Errorf("KarpenterMachineTemplate %s: %w", template.Name, err)
	}
	g := &Generator{
		cluster: cluster, allowed: bases.Allowed, template: template, kind: scalable.KindOf(template.Spec.ScalableResource), patches: patches,
		version: version.Of(template, bases.Bootstrap, bases.ControlPlane, bases.Followed), followed: bases.Followed.MachineDeployment,
		bases: map[v1alpha1.PatchTarget]*base{}, byRef: bases.ByRef, referred: map[clusterv1.ContractVersionedObjectReference]*unstructured.Unstructured{},
	}
	for _, target := range targets {
		object := bases.of(target)
		if object == nil {
			continue
		}
		spec, err := specOf(object)
		if err != nil {
			return nil, err
		}
		g.bases[target] = &base{
			object: object, spec: spec, generated: map[string]patched{}, room: maxGenerated,
			joins: object.GroupVersionKind().GroupKind() == version.KubeadmTemplate,
		}
	}
	return g, nil
}

// specOf returns a copy of the spec of a base. Patches can add to an empty template, too (see scalable.AcceptsBootstrap).
func specOf(object *unstructured.Unstructured) (map[string]any, error) {
	spec, _, err := unstructured.NestedMap(object.Object, "spec")
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", object.GetKind(), client.ObjectKeyFromObject(object), err)
	}
	if _, has := spec["template"]; !has && scalable.IsTemplateKind(object) {
		spec = lo.Assign(spec, map[string]any{"template": map[string]any{"spec": map[string]any{}}})
	}
	return spec, nil
}

// Generate returns the objects for an offering. Names and the template hash depend only on
// what shapes the Machines, and not on the price, for example.
//
// It returns an error if the offering has no infrastructure or patches cannot be applied,
// and an UnreadError if a template could not be read.
func (g *Generator) Generate(instanceType *catalog.Type, offering *catalog.Offering) (*Generated, error) {
	return g.generate(instanceType, offering, "")
}

// generate returns the objects for an offering, with another name if the resource of their name is ending.
func (g *Generator) generate(instanceType *catalog.Type, offering *catalog.Offering, ending types.UID) (*Generated, error) {
	if offering.InfrastructureRef == nil && g.bases[v1alpha1.PatchTargetInfrastructure] == nil {
		return nil, fmt.Errorf("KarpenterMachineTemplate %s: instance type %s has no infrastructureRef: set one there or in spec.template.spec", g.template.Name, instanceType.Name)
	}
	key, kubelet := instanceType.KeyOf(offering), catalog.KubeletOf(g.template.Spec.Kubelet, instanceType.Capacity)
	variables := g.variables(instanceType, offering, kubelet)
	infrastructure, err := g.infrastructureOf(offering, variables)
	if err != nil {
		return nil, err
	}
	bootstrap := patched{}
	if g.bases[v1alpha1.PatchTargetBootstrap] != nil {
		if bootstrap, err = g.patchedFor(v1alpha1.PatchTargetBootstrap, variables, kubeletArguments(kubelet)...); err != nil {
			return nil, err
		}
	}
	hashes, err := g.hashesOf(offering, kubelet, infrastructure, bootstrap)
	if err != nil {
		return nil, err
	}
	generated := &Generated{Hashes: hashes, ending: ending}
	if g.kind.HasMachineSets() {
		g.setMachineDeployment(generated, key, offering, infrastructure, bootstrap.object)
		return generated, nil
	}
	return generated, g.setMachinePool(generated, key, offering, infrastructure, bootstrap.object)
}

// UnreadError is the error for a template that could not be read, so that it is unknown
// whether the offering is valid.
type UnreadError struct{ error }

// Unwrap returns the cause.
func (e UnreadError) Unwrap() error { return e.error }

// infrastructureOf returns the infrastructure template of an offering: the template's base with its
// patches, or the one that the instance type refers to, without changes.
func (g *Generator) infrastructureOf(offering *catalog.Offering, variables patch.Variables) (*unstructured.Unstructured, error) {
	ref := offering.InfrastructureRef
	if ref == nil {
		template, err := g.patchedFor(v1alpha1.PatchTargetInfrastructure, variables)
		return template.object, err
	}
	if known := g.referred[*ref]; known != nil {
		return known, nil
	}
	if g.byRef == nil {
		return nil, errors.New("infrastructureRefs of instance types cannot be read")
	}
	base, err := g.byRef(*ref)
	if err != nil {
		err = fmt.Errorf("KarpenterMachineTemplate %s: infrastructureRef %s %s: %w", g.template.Name, ref.Kind, ref.Name, err)
		if apierrors.IsNotFound(err) {
			return nil, err
		}
		return nil, UnreadError{err}
	}
	if err := cmp.Or(MayUse(g.template, v1alpha1.PatchTargetInfrastructure, base, g.allowed), g.allowed.Generated(base, base)); err != nil {
		return nil, fmt.Errorf("KarpenterMachineTemplate %s: %w", g.template.Name, err)
	}
	g.referred[*ref] = base
	return base, nil
}

// machine returns the spec that all Machines of the template have in common.
func (g *Generator) machine() clusterv1.MachineSpec {
	spec := g.template.Spec.Template.Spec
	machine := clusterv1.MachineSpec{
		ClusterName: g.cluster.Name,
		Bootstrap:   *spec.Bootstrap.DeepCopy(),
		Version:     g.version.Name,
	}
	setInPlace(&machine, spec)
	return machine
}

// patchedFor returns a base with the patches for an offering, and then with the arguments of the kubelet and
// the taint with which Nodes must register. Patches come first, so that none of them can remove these.
//
// The bases of a template that follows a MachineDeployment are always copied: Cluster API's topology deletes
// them when that MachineDeployment no longer uses them (core/reconcilers/topology/machineset).
func (g *Generator) patchedFor(target v1alpha1.PatchTarget, variables patch.Variables, arguments ...argument) (patched, error) {
	operations, err := g.patches.Render(target, variables)
	if err != nil {
		return patched{}, fmt.Errorf("KarpenterMachineTemplate %s: %w", g.template.Name, err)
	}
	b := g.bases[target]
	key := operations.Key()
	if b.joins {
		key += fmt.Sprint(arguments)
	}
	if known, found := b.generated[key]; found {
		return known, nil
	}
	if copies := !operations.Empty() || b.joins; copies && !b.take(len(key)) {
		return patched{}, fmt.Errorf("KarpenterMachineTemplate %s: patches generate more than %d MiB of different templates from %s %s: use fewer variables in patches, or name fewer instance types and zones",
			g.template.Name, maxGenerated>>20, b.object.GetKind(), b.object.GetName())
	}
	result := patched{object: b.object, spec: b.spec}
	if !operations.Empty() {
		if result.spec, err = operations.Apply(b.spec); err != nil {
			return patched{}, fmt.Errorf("KarpenterMachineTemplate %s: %w, %s %s", g.template.Name, err, b.object.GetKind(), b.object.GetName())
		}
	}
	spec := result.spec
	if b.joins {
		spec = runtime.DeepCopyJSON(spec)
		if err := joinTainted(b.object.GroupVersionKind().Version, spec, arguments); err != nil {
			return patched{}, fmt.Errorf("KarpenterMachineTemplate %s: %s %s: %w", g.template.Name, b.object.GetKind(), b.object.GetName(), err)
		}
	}
	if g.template.Spec.Template.From != nil || !reflect.DeepEqual(spec, b.object.Object["spec"]) {
		result.object = g.copyOf(b.object, spec)
	}
	if err := g.allowed.Generated(b.object, result.object); err != nil {
		return patched{}, fmt.Errorf("KarpenterMachineTemplate %s: %w", g.template.Name, err)
	}
	b.generated[key] = result
	return result, nil
}

// isCopy reports whether an object is a copy of a base, and not a base itself.
func (g *Generator) isCopy(object *unstructured.Unstructured) bool {
	for _, base := range g.bases {
		if object == base.object {
			return false
		}
	}
	return g.referred[referenceTo(object)] != object
}

func referenceTo(object *unstructured.Unstructured) clusterv1.ContractVersionedObjectReference {
	kind := object.GroupVersionKind()
	return clusterv1.ContractVersionedObjectReference{APIGroup: kind.Group, Kind: kind.Kind, Name: object.GetName()}
}

// variables returns the variables of an offering for Go templates in patches.
func (g *Generator) variables(instanceType *catalog.Type, offering *catalog.Offering, kubelet *v1alpha1.KubeletConfiguration) patch.Variables {
	labels := instanceType.NodeLabels()
	return patch.Variables{
		InstanceType:    instanceType.Name,
		Zone:            offering.Zone,
		FailureDomain:   offering.FailureDomain,
		CapacityType:    offering.CapacityType,
		ReservationID:   lo.FromPtr(offering.Reservation).ID,
		Region:          labels[corev1.LabelTopologyRegion],
		Architecture:    labels[corev1.LabelArchStable],
		OperatingSystem: labels[corev1.LabelOSStable],
		Labels:          labels,
		MaxPods:         catalog.MaxPods(kubelet),
		KubeReserved: lo.MapEntries(lo.FromPtr(kubelet).KubeReserved, func(name corev1.ResourceName, quantity resource.Quantity) (string, string) {
			return string(name), quantity.String()
		}),
		ClusterName:       g.cluster.Name,
		KubernetesVersion: g.version.Name,
		TemplateName:      g.template.Name,
	}
}
