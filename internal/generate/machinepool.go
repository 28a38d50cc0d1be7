// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"fmt"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/external"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/hash"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// setMachinePool sets the MachinePool for an offering, with its own machine pool and
// bootstrap configuration, which are not templates and cannot be shared.
func (g *Generator) setMachinePool(generated *Generated, key catalog.Key, offering *catalog.Offering, infrastructure, bootstrap *unstructured.Unstructured) error {
	bases := lo.Compact([]*unstructured.Unstructured{infrastructure, bootstrap})
	machine := g.machine()
	specs := lo.Map(bases, func(base *unstructured.Unstructured, _ int) any {
		return []any{base.GetAPIVersion(), base.GetKind(), base.Object["spec"]}
	})
	content := hash.Of(hash.Resource, g.template.Name, "MachinePool", key, rolled(machine), offering.FailureDomain, generated.Hashes.Kubelet, specs)
	name, labels := g.nameOf(content, key, generated.ending), g.labelsOf(content, key)
	refs := []*clusterv1.ContractVersionedObjectReference{&machine.InfrastructureRef, &machine.Bootstrap.ConfigRef}
	for i, base := range bases {
		object, err := g.objectOf(base, name, labels)
		if err != nil {
			return err
		}
		generated.Objects = append(generated.Objects, object)
		*refs[i] = referenceTo(object)
	}
	metadata := g.template.Spec.Template.Metadata
	generated.Resource = scalable.New(&clusterv1.MachinePool{
		ObjectMeta: g.metadata(name, labels),
		Spec: clusterv1.MachinePoolSpec{
			ClusterName:    g.cluster.Name,
			FailureDomains: lo.Compact([]string{offering.FailureDomain}),
			Template: clusterv1.MachineTemplateSpec{
				ObjectMeta: clusterv1.ObjectMeta{
					Labels: lo.Assign(metadata.LabelStrings(), labels),
					// No hook: Cluster API puts these annotations on Machines that are being
					// deleted, too (createOrUpdateMachines), so it could never be removed.
					Annotations: lo.Assign(metadata.Annotations),
				},
				Spec: machine,
			},
		},
	})
	return nil
}

// objectOf generates an object from its template, like Cluster API's topology controller
// (exp/topology/desiredstate/desired_state.go, computeMachinePool), or from another object
// of the same kind, which then serves as the template.
func (g *Generator) objectOf(base *unstructured.Unstructured, name string, labels map[string]string) (*unstructured.Unstructured, error) {
	template := base.DeepCopy()
	if !scalable.IsTemplateKind(base) {
		spec, _, err := unstructured.NestedMap(base.Object, "spec")
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", base.GetKind(), client.ObjectKeyFromObject(base), err)
		}
		// The provider sets these for the instances that exist.
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
	if made := g.kind.MadeOf(base.GroupVersionKind()); object.GroupVersionKind() != made {
		return nil, fmt.Errorf("%s %s makes a %s of %s, expected a %s of %s: remove apiVersion and kind from its spec.template",
			base.GetKind(), client.ObjectKeyFromObject(base), object.GetKind(), object.GetAPIVersion(), made.Kind, made.GroupVersion())
	}
	return object, nil
}
