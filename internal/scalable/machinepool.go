// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/external"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/patch"
)

// machinePools is the Kind of MachinePools. What acts on their replicas is the
// infrastructure provider, see provider.go.
type machinePools struct{}

// Name returns the name of the kind.
func (machinePools) Name() v1alpha1.ScalableResourceKind {
	return v1alpha1.ScalableResourceKindMachinePool
}

func (machinePools) empty() (client.Object, client.ObjectList) {
	return &clusterv1.MachinePool{}, &clusterv1.MachinePoolList{}
}

func (machinePools) fields(object client.Object) fields {
	pool := object.(*clusterv1.MachinePool)
	return fields{
		replicas: pool.Spec.Replicas, template: &pool.Spec.Template,
		machines: pool.Status.Replicas, ready: pool.Status.ReadyReplicas,
	}
}

// setReplicas notes when that was, for the waits of a Machine that leaves.
func (machinePools) setReplicas(object client.Object, replicas int32, now time.Time) {
	pool := object.(*clusterv1.MachinePool)
	pool.Spec.Replicas = &replicas
	metav1.SetMetaDataAnnotation(&pool.ObjectMeta, v1alpha1.ReplicasSetAtAnnotation, Timestamp(now))
}

// Shares is false: Cluster API makes the MachinePool the controller of what it refers to
// (core/reconcilers/machinepool, reconcileExternal).
func (machinePools) Shares() bool { return false }

// indiscriminate are machine pools whose providers do not look at the annotation
// cluster.x-k8s.io/delete-machine (test/infrastructure/MACHINEPOOLS.md).
var indiscriminate = []schema.GroupKind{
	{Group: "infrastructure.cluster.x-k8s.io", Kind: "AWSMachinePool"},
	{Group: "infrastructure.cluster.x-k8s.io", Kind: "AWSManagedMachinePool"},
	{Group: "infrastructure.cluster.x-k8s.io", Kind: "AzureManagedMachinePool"},
	{Group: "infrastructure.cluster.x-k8s.io", Kind: "OCIMachinePool"},
}

// Accepts demands a template of a machine pool or, as not all providers have such
// templates, a machine pool that no MachinePool owns; and that its provider removes the
// Machines that it is told to.
func (machinePools) Accepts(base *unstructured.Unstructured, settings v1alpha1.ScalableResource) error {
	name := fmt.Sprintf("%s %s", base.GetKind(), client.ObjectKeyFromObject(base))
	kind := base.GroupVersionKind().GroupKind()
	kind.Kind = strings.TrimSuffix(kind.Kind, clusterv1.TemplateSuffix)
	owner := metav1.GetControllerOf(base)
	switch {
	case !makesPools(base.GetKind()):
		return fmt.Errorf("%s is not for MachinePools: name a machine pool or a template of one, or set spec.scalableResource.kind to MachineDeployment", name)
	case isTemplateKind(base) && IsTemplate(base) != nil:
		return IsTemplate(base)
	case !isTemplateKind(base) && owner != nil:
		return fmt.Errorf("%s is in use by %s %s: make one of its own for this template, which nothing owns", name, owner.Kind, owner.Name)
	case slices.Contains(indiscriminate, kind) && !settings.AllowNodeLoss:
		return fmt.Errorf("%s: the infrastructure provider of %ss removes any machine when replicas are lowered, also one that is in use: use MachineDeployments, or set spec.scalableResource.allowNodeLoss", name, kind.Kind)
	}
	return nil
}

// makesPools tells whether a kind is a machine pool or a template of one: all of them
// are named so (Cluster API's book: providers/contracts/infra-machinepool.md).
func makesPools(kind string) bool { return strings.Contains(kind, "MachinePool") }

func isTemplateKind(object *unstructured.Unstructured) bool {
	return strings.HasSuffix(object.GetKind(), clusterv1.TemplateSuffix)
}

// IsTemplate returns an error if an object is no template.
func IsTemplate(object *unstructured.Unstructured) error {
	if _, is, err := unstructured.NestedMap(object.Object, "spec", "template"); err != nil || !is {
		return fmt.Errorf("%s %s is no template, for it has no spec.template: name a kind that ends in Template", object.GetKind(), client.ObjectKeyFromObject(object))
	}
	return nil
}

// MadeOf returns the kind of the objects: a template becomes what it is a template of.
func (machinePools) MadeOf(base schema.GroupVersionKind) schema.GroupVersionKind {
	return base.GroupVersion().WithKind(strings.TrimSuffix(base.Kind, clusterv1.TemplateSuffix))
}

// generate returns the MachinePool for an offering, with a machine pool and a bootstrap
// configuration of its own: those are no templates, and cannot be shared.
func (machinePools) generate(g *Generator, key catalog.Key, offering *catalog.Offering, variables patch.Variables) (*Generated, error) {
	infrastructure, err := g.infrastructureOf(offering, variables)
	if err != nil {
		return nil, err
	}
	bases := []*unstructured.Unstructured{infrastructure}
	machine := g.machine()
	if g.bases[v1alpha1.PatchTargetBootstrap] != nil {
		bootstrap, err := g.templateOf(v1alpha1.PatchTargetBootstrap, variables)
		if err != nil {
			return nil, err
		}
		bases = append(bases, bootstrap)
	}
	specs := lo.Map(bases, func(base *unstructured.Unstructured, _ int) any {
		return []any{base.GetAPIVersion(), base.GetKind(), base.Object["spec"]}
	})
	hash := HashOf(g.template.Name, "MachinePool", key, g.template.Spec.Template.Metadata, machine, offering.FailureDomain, g.template.Spec.Kubelet, specs)
	name, labels := g.nameOf(hash, key), g.labelsOf(hash, key)
	generated := &Generated{}
	refs := []*clusterv1.ContractVersionedObjectReference{&machine.InfrastructureRef, &machine.Bootstrap.ConfigRef}
	for i, base := range bases {
		object, err := g.objectOf(base, name, labels)
		if err != nil {
			return nil, err
		}
		generated.Objects = append(generated.Objects, object)
		*refs[i] = referenceTo(object)
	}
	metadata := g.template.Spec.Template.Metadata
	generated.Resource = resourceOf(machinePools{}, &clusterv1.MachinePool{
		ObjectMeta: g.metadata(name, labels),
		Spec: clusterv1.MachinePoolSpec{
			ClusterName:    g.cluster.Name,
			FailureDomains: lo.Compact([]string{offering.FailureDomain}),
			Template: clusterv1.MachineTemplateSpec{
				ObjectMeta: clusterv1.ObjectMeta{
					Labels: lo.Assign(metadata.Labels, labels),
					// No hook: Cluster API puts these annotations on Machines that are being
					// deleted, too (createOrUpdateMachines), so that it could never be taken off.
					Annotations: lo.Assign(metadata.Annotations),
				},
				Spec: machine,
			},
		},
	})
	return generated, nil
}

// UnreadError says that what an offering is made from could not be read, so that nothing
// is known of the offering.
type UnreadError struct{ error }

// infrastructureOf returns what a machine pool is made from: the template's base with
// its patches, or what the instance type refers to itself, which is taken as it is.
func (g *Generator) infrastructureOf(offering *catalog.Offering, variables patch.Variables) (*unstructured.Unstructured, error) {
	ref := offering.InfrastructureRef
	if ref == nil {
		return g.templateOf(v1alpha1.PatchTargetInfrastructure, variables)
	}
	if g.byRef == nil {
		return nil, errors.New("nothing to read infrastructureRefs of instance types with")
	}
	base, err := g.byRef(*ref)
	if err != nil {
		err = fmt.Errorf("KarpenterMachineTemplate %s: infrastructureRef %s %s: %w", g.template.Name, ref.Kind, ref.Name, err)
		if apierrors.IsNotFound(err) {
			return nil, err
		}
		return nil, UnreadError{err}
	}
	if err := (machinePools{}).Accepts(base, g.template.Spec.ScalableResource); err != nil {
		return nil, fmt.Errorf("KarpenterMachineTemplate %s: %w", g.template.Name, err)
	}
	return base, nil
}

// objectOf makes an object of its template, as Cluster API's topology controller does
// (exp/topology/desiredstate/desired_state.go, computeMachinePool), or of another object
// of the same kind, which then is the template.
func (g *Generator) objectOf(base *unstructured.Unstructured, name string, labels map[string]string) (*unstructured.Unstructured, error) {
	template := base.DeepCopy()
	if !isTemplateKind(base) {
		spec, _, err := unstructured.NestedMap(base.Object, "spec")
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", base.GetKind(), client.ObjectKeyFromObject(base), err)
		}
		// These are what there is, and belong to the provider.
		delete(spec, "providerID")
		delete(spec, "providerIDList")
		template.Object["spec"] = map[string]any{"template": map[string]any{"spec": spec}}
	}
	from := &corev1.ObjectReference{APIVersion: base.GetAPIVersion(), Kind: base.GetKind(), Name: base.GetName()}
	if original, is := base.GetAnnotations()[clusterv1.TemplateClonedFromNameAnnotation]; is && base.GetUID() == "" {
		from.Name = original // a copy with patches, which is not in the cluster
	}
	object, err := external.GenerateTemplate(&external.GenerateTemplateInput{
		Template: template, TemplateRef: from, Namespace: g.cluster.Namespace, Name: name, ClusterName: g.cluster.Name, Labels: labels,
	})
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", base.GetKind(), client.ObjectKeyFromObject(base), err)
	}
	return object, nil
}
