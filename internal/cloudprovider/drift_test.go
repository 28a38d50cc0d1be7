// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"strings"
	"testing"

	"github.com/awslabs/operatorpkg/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/generate"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// driftWorld is the served Cluster at v1.36.3, a template and a registered claim that was launched from
// it.
type driftWorld struct {
	client.Client
	provider *CloudProvider
	claim    *karpv1.NodeClaim
}

func newDriftWorld(t *testing.T) *driftWorld {
	t.Helper()
	return newDriftWorldOf(t, nil)
}

// newDriftWorldOf returns the same with changes of the template and its catalog.
func newDriftWorldOf(t testing.TB, change func(*v1alpha1.KarpenterMachineTemplate, *v1alpha1.InstanceTypeCatalog)) *driftWorld {
	t.Helper()
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "served"}}
	cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: "controlplane.cluster.x-k8s.io", Kind: "TestControlPlane", Name: "served"}
	provider, c := newProviderOf(change, cluster,
		object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "testcontrolplanes.controlplane.cluster.x-k8s.io", map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta2"}),
		controlPlane("v1.36.3", "v1.36.3"))
	created, err := provider.Create(t.Context(), waiting())
	if err != nil {
		t.Fatal(err)
	}
	created.Spec.NodeClassRef = nodeClassRef
	created.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered)
	return &driftWorld{Client: c, provider: provider, claim: created}
}

func controlPlane(version, running string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"version": version}, "status": map[string]any{"version": running}}}
	o.SetAPIVersion("controlplane.cluster.x-k8s.io/v1beta2")
	o.SetKind("TestControlPlane")
	o.SetNamespace("fleet")
	o.SetName("served")
	return o
}

// edit changes the template, which the operator has examined afterwards.
func (w *driftWorld) edit(t *testing.T, change func(*v1alpha1.KarpenterMachineTemplate)) {
	t.Helper()
	template := &v1alpha1.KarpenterMachineTemplate{}
	w.get(t, "general", template)
	template.Generation++
	conditions := append([]status.Condition{}, template.Status.Conditions...)
	for i := range conditions {
		conditions[i].ObservedGeneration = template.Generation
	}
	template.Status.Conditions = conditions
	change(template)
	w.update(t, template)
}

// editBase changes the content of the infrastructure template.
func (w *driftWorld) editBase(t *testing.T, value string) {
	t.Helper()
	base := &unstructured.Unstructured{}
	base.SetAPIVersion("infrastructure.cluster.x-k8s.io/v1beta2")
	base.SetKind("AWSMachineTemplate")
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: "fleet", Name: "workers"}, base); err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedField(base.Object, value, "spec", "template", "spec", "ami"); err != nil {
		t.Fatal(err)
	}
	w.update(t, base)
}

// setControlPlane sets the version of the control plane, and the one that it runs.
func (w *driftWorld) setControlPlane(t *testing.T, version, running string) {
	t.Helper()
	changed := controlPlane(version, running)
	stored := changed.DeepCopy()
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(changed), stored); err != nil {
		t.Fatal(err)
	}
	changed.SetResourceVersion(stored.GetResourceVersion())
	w.update(t, changed)
}

func (w *driftWorld) get(t *testing.T, name string, object client.Object) {
	t.Helper()
	if err := w.Get(t.Context(), client.ObjectKey{Name: name}, object); err != nil {
		t.Fatal(err)
	}
}

func (w *driftWorld) update(t *testing.T, object client.Object) {
	t.Helper()
	if err := w.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

func TestIsDrifted(t *testing.T) {
	type template = *v1alpha1.KarpenterMachineTemplate
	edit := func(change func(template)) func(*testing.T, *driftWorld) {
		return func(t *testing.T, w *driftWorld) { w.edit(t, change) }
	}
	type listed = *v1alpha1.InstanceTypeCatalog
	list := func(change func(listed)) func(*testing.T, *driftWorld) {
		return func(t *testing.T, w *driftWorld) {
			catalog := fixture.Catalog()
			w.get(t, catalog.Name, catalog)
			catalog.Generation++
			change(catalog)
			w.update(t, catalog)
		}
	}
	base := func(t *testing.T, w *driftWorld) { w.editBase(t, "ami-2") }
	version := func(version, running string) func(*testing.T, *driftWorld) {
		return func(t *testing.T, w *driftWorld) { w.setControlPlane(t, version, running) }
	}
	for name, tc := range map[string]struct {
		changes []func(*testing.T, *driftWorld)
		want    cloudprovider.DriftReason
	}{
		"nothing": {},
		"a price": {changes: []func(*testing.T, *driftWorld){list(func(c listed) { c.Spec.InstanceTypes[0].Offerings[0].Price = "0.1" })}},
		"a version, which was that of the control plane": {changes: []func(*testing.T, *driftWorld){edit(func(t template) { t.Spec.Template.Spec.Version = "v1.36.3" })}},
		"another version": {changes: []func(*testing.T, *driftWorld){edit(func(t template) { t.Spec.Template.Spec.Version = "v1.36.2" })}, want: v1alpha1.DriftVersion},
		"a kubelet":       {changes: []func(*testing.T, *driftWorld){edit(func(t template) { t.Spec.Kubelet = &v1alpha1.KubeletConfiguration{MaxPods: new(int32(9))} })}, want: v1alpha1.DriftKubelet},
		"a Secret": {changes: []func(*testing.T, *driftWorld){edit(func(t template) {
			t.Spec.Template.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: new("other")}
		})}, want: v1alpha1.DriftBootstrap},
		"an edit of the base":                   {changes: []func(*testing.T, *driftWorld){base}, want: v1alpha1.DriftInfrastructure},
		"the control plane is upgraded":         {changes: []func(*testing.T, *driftWorld){version("v1.37.0", "v1.37.0")}, want: v1alpha1.DriftVersion},
		"the control plane is being upgraded":   {changes: []func(*testing.T, *driftWorld){version("v1.37.0", "v1.36.3")}},
		"an edit of the base during an upgrade": {changes: []func(*testing.T, *driftWorld){base, version("v1.37.0", "v1.36.3")}},
		"the offering is removed": {changes: []func(*testing.T, *driftWorld){list(func(c listed) {
			c.Spec.InstanceTypes = c.Spec.InstanceTypes[1:]
		})}, want: v1alpha1.DriftOfferingRemoved},
		"the offering is invalid": {changes: []func(*testing.T, *driftWorld){list(func(c listed) {
			c.Spec.InstanceTypes[0].Offerings[0].Price = "no price"
		})}},
		"the reference to the catalog is removed": {changes: []func(*testing.T, *driftWorld){edit(func(t template) { t.Spec.CatalogRefs = nil })}, want: v1alpha1.DriftOfferingRemoved},
		"the catalog is deleted": {changes: []func(*testing.T, *driftWorld){func(t *testing.T, w *driftWorld) {
			if err := w.Delete(t.Context(), fixture.Catalog()); err != nil {
				t.Fatal(err)
			}
		}}},
		"an edit that is not examined":                {changes: []func(*testing.T, *driftWorld){base, edit(func(t template) { t.Generation++ })}},
		"an edit whose offerings were never examined": {changes: []func(*testing.T, *driftWorld){base, edit(func(t template) { t.Status.AcceptedHash = "" })}},
		"an edit, and Ready is of an earlier one": {changes: []func(*testing.T, *driftWorld){base, edit(func(t template) {
			for i := range t.Status.Conditions {
				t.Status.Conditions[i].ObservedGeneration--
			}
		})}},
		"a version that is too new":                     {changes: []func(*testing.T, *driftWorld){edit(func(t template) { t.Spec.Template.Spec.Version = "v1.38.0" })}},
		"the control plane reports no version any more": {changes: []func(*testing.T, *driftWorld){version("", "")}},
		"an edit that is not Ready": {changes: []func(*testing.T, *driftWorld){base, edit(func(t template) {
			t.StatusConditions().SetFalse(v1alpha1.ConditionInstanceTypesReady, "x", "x")
		})}},
		"an edit whose patches fail for this offering": {changes: []func(*testing.T, *driftWorld){base, edit(func(t template) {
			t.Spec.Patches = []v1alpha1.Patch{{Target: v1alpha1.PatchTargetInfrastructure, JSONPatches: []v1alpha1.JSONPatch{{Op: "remove", Path: "/spec/template/spec/none"}}}}
		})}},
		"Cluster API is blocked": {changes: []func(*testing.T, *driftWorld){base, edit(func(t template) {
			t.StatusConditions().SetFalse(v1alpha1.ConditionMachinesProgressing, v1alpha1.ReasonBlocked, "x")
		})}},
		"the template is being deleted": {changes: []func(*testing.T, *driftWorld){base, func(t *testing.T, w *driftWorld) {
			w.edit(t, func(template template) { template.Finalizers = []string{"example.com/x"} })
			if err := w.Delete(t.Context(), &v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "general"}}); err != nil {
				t.Fatal(err)
			}
		}}},
		"the template is deleted": {changes: []func(*testing.T, *driftWorld){func(t *testing.T, w *driftWorld) {
			if err := w.Delete(t.Context(), &v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "general"}}); err != nil {
				t.Fatal(err)
			}
		}}},
		"the Node is not registered": {changes: []func(*testing.T, *driftWorld){base, func(_ *testing.T, w *driftWorld) {
			w.claim.StatusConditions().SetUnknown(karpv1.ConditionTypeRegistered)
		}}},
		"an edit of the base, and no version was ever known": {changes: []func(*testing.T, *driftWorld){base, version("", ""), func(_ *testing.T, w *driftWorld) {
			hashes := generate.ParseHashes(w.claim.Annotations[v1alpha1.MachineHashesAnnotation])
			hashes.Version = ""
			w.claim.Annotations[v1alpha1.MachineHashesAnnotation] = hashes.String()
		}}, want: v1alpha1.DriftInfrastructure},
		"an edit with which its offering is not accepted": {changes: []func(*testing.T, *driftWorld){base, func(t *testing.T, w *driftWorld) {
			template := &v1alpha1.KarpenterMachineTemplate{}
			w.get(t, "general", template)
			w.provider.catalog.SetAccepted(template, sets.New[catalog.Key]())
		}}},
		"another release has computed the hashes": {changes: []func(*testing.T, *driftWorld){base, func(_ *testing.T, w *driftWorld) {
			w.claim.Annotations[v1alpha1.MachineHashesAnnotation] = strings.ReplaceAll(w.claim.Annotations[v1alpha1.MachineHashesAnnotation], "v1-", "v0-")
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newDriftWorld(t)
			for _, change := range tc.changes {
				change(t, w)
			}
			got, err := w.provider.IsDrifted(t.Context(), w.claim)
			if err != nil || got != tc.want {
				t.Errorf("got %q and %v, want %q", got, err, tc.want)
			}
		})
	}
}
