// SPDX-License-Identifier: Apache-2.0

package tenancy

import (
	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Template identifies a base template in the namespace of the served Cluster.
type Template struct {
	Kind schema.GroupKind
	Name string
}

// TemplateOf returns what identifies an object.
func TemplateOf(object *unstructured.Unstructured) Template {
	return Template{Kind: object.GroupVersionKind().GroupKind(), Name: object.GetName()}
}

// Own is what the served Cluster uses in the management cluster without this operator. Only users with
// rights in the management cluster decide that.
type Own struct {
	// Templates are those that its own MachineDeployments and MachinePools refer to.
	Templates sets.Set[Template]
	// Secrets are those that its own base templates, MachineDeployments and MachinePools name.
	Secrets sets.Set[string]
	// ControlPlane are the templates of machines that its control plane refers to.
	ControlPlane sets.Set[Template]
	// Labelled are the Secrets with the label of the rules.
	Labelled sets.Set[string]
}

// NewOwn returns what nothing was added to.
func NewOwn() Own {
	return Own{Templates: sets.New[Template](), ControlPlane: sets.New[Template](), Secrets: sets.New[string](), Labelled: sets.New[string]()}
}

// Resource is a MachineDeployment or MachinePool.
type Resource struct {
	metav1.Object
	Machine clusterv1.MachineSpec
}

// IsOwn reports whether a user or a topology created a MachineDeployment or MachinePool of the Cluster. What
// the operator generated follows templates, so it shows nothing about what templates may reach.
func (r Resource) IsOwn(cluster types.NamespacedName) bool {
	_, generated := r.GetLabels()[v1alpha1.TemplateLabel]
	_, adopted := r.GetAnnotations()[v1alpha1.AdoptedAnnotation]
	return r.Machine.ClusterName == cluster.Name && r.GetNamespace() == cluster.Namespace && (!generated || adopted)
}

// References returns the templates that the resource refers to.
func (r Resource) References() []Template {
	refs := []clusterv1.ContractVersionedObjectReference{r.Machine.InfrastructureRef, r.Machine.Bootstrap.ConfigRef}
	return lo.FilterMap(refs, func(ref clusterv1.ContractVersionedObjectReference, _ int) (Template, bool) {
		return Template{Kind: ref.GroupKind(), Name: ref.Name}, ref.IsDefined()
	})
}

// AddResource adds what a MachineDeployment or MachinePool of the Cluster refers to.
func (o Own) AddResource(resource Resource) {
	o.Templates.Insert(resource.References()...)
	if secret := resource.Machine.Bootstrap.DataSecretName; secret != nil {
		o.Secrets.Insert(*secret)
	}
}

// AddControlPlane adds the template of machines that a control plane refers to (Cluster API: docs/book/src/developer/
// providers/contracts/control-plane.md; version v1beta1 of the contract has the reference elsewhere).
func (o Own) AddControlPlane(controlPlane *unstructured.Unstructured) {
	for _, at := range [][]string{{"spec", "machineTemplate", "spec", "infrastructureRef"}, {"spec", "machineTemplate", "infrastructureRef"}} {
		ref, _, _ := unstructured.NestedMap(controlPlane.Object, at...) // what has another form names nothing
		text := func(key string) string { value, _ := ref[key].(string); return value }
		group := text("apiGroup")
		if group == "" {
			group = schema.FromAPIVersionAndKind(text("apiVersion"), "").Group
		}
		o.ControlPlane.Insert(Template{Kind: schema.GroupKind{Group: group, Kind: text("kind")}, Name: text("name")})
	}
}

// ofControlPlane reports whether the control plane uses a template, and no worker that the operator did not generate.
func (o Own) ofControlPlane(object *unstructured.Unstructured) bool {
	return o.ControlPlane.Has(TemplateOf(object)) && !o.Templates.Has(TemplateOf(object))
}

// IsOwn reports whether a base template belongs to the Cluster: a MachineDeployment or MachinePool of the
// Cluster refers to it, or it has the label with the Cluster's name. Owner references show nothing, because
// Cluster API makes a Cluster the owner of a base template that a generated MachineDeployment refers to.
//
// What has a controller is no base template but was created for a Machine, such as a KubeadmConfig of the
// control plane. A template can name its kind, and Cluster API has labelled it.
func (o Own) IsOwn(object *unstructured.Unstructured, cluster types.NamespacedName) bool {
	if o.Templates.Has(TemplateOf(object)) {
		return true
	}
	_, generated := object.GetLabels()[v1alpha1.TemplateLabel]
	return !generated && !ofMachine(object) && object.GetLabels()[clusterv1.ClusterNameLabel] == cluster.Name && metav1.GetControllerOf(object) == nil
}

// ofMachine reports whether an object was created for one Machine. Cluster API labels those of control planes at once,
// and makes the Machine the controller later.
func ofMachine(object *unstructured.Unstructured) bool {
	_, ofControlPlane := object.GetLabels()[clusterv1.MachineControlPlaneLabel]
	controller := metav1.GetControllerOf(object)
	return ofControlPlane || controller != nil && controller.Kind == "Machine"
}

// AddTemplate adds the Secrets that a base template names, if it belongs to the Cluster.
func (o Own) AddTemplate(object *unstructured.Unstructured, cluster types.NamespacedName) {
	if !o.IsOwn(object, cluster) {
		return
	}
	for _, reference := range Secrets(specOf(object), cluster.Namespace) {
		o.Secrets.Insert(reference.Secret)
	}
}

// otherCluster returns the name of another Cluster that a base template belongs to, by its label; empty if it
// belongs to the Cluster or to none. Owner references do not count: Cluster API makes each Cluster whose resources
// refer to a template an owner of it, and several Clusters can share one.
func (o Own) otherCluster(object *unstructured.Unstructured, cluster types.NamespacedName) string {
	name := object.GetLabels()[clusterv1.ClusterNameLabel]
	if name == cluster.Name || o.Templates.Has(TemplateOf(object)) {
		return ""
	}
	return name
}

// specOf returns the spec of an object; nil if it has none.
func specOf(object *unstructured.Unstructured) map[string]any {
	spec, _ := object.Object["spec"].(map[string]any)
	return spec
}
