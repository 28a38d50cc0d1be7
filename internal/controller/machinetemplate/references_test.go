// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/awslabs/operatorpkg/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/generate"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
)

// withOwnInfrastructure returns a template whose instance types are in a catalog and name their own
// infrastructure.
func withOwnInfrastructure(names ...string) (*v1alpha1.KarpenterMachineTemplate, *v1alpha1.InstanceTypeCatalog) {
	template := newTemplate()
	listed := &v1alpha1.InstanceTypeCatalog{ObjectMeta: metav1.ObjectMeta{Name: "shared", UID: "2", Generation: 1}}
	for _, name := range names {
		instanceType := newCatalog().Spec.InstanceTypes[0]
		instanceType.Name = "type-" + name
		instanceType.InfrastructureRef = &clusterv1.ContractVersionedObjectReference{APIGroup: infrastructureKind.Group, Kind: infrastructureKind.Kind, Name: name}
		listed.Spec.InstanceTypes = append(listed.Spec.InstanceTypes, instanceType)
	}
	template.Spec.Template.Spec.InfrastructureRef = nil
	template.Spec.CatalogRefs = []v1alpha1.CatalogReference{{Name: listed.Name}}
	return template, listed
}

// The infrastructure of a template can come from its catalogs alone.
func TestInfrastructureOfCatalogs(t *testing.T) {
	template, listed := withOwnInfrastructure("workers")
	c := newCell(template, listed)
	got, err := c.reconcile(t, template.Name)
	if err != nil {
		t.Fatal(err)
	}
	if conditions := got.StatusConditions(); !conditions.Root().IsTrue() {
		t.Errorf("got %+v, want Ready", conditions.Root())
	}
}

// Catalogs are shared, so a type that names a missing template harms no other type. It is offered as soon as
// its template exists.
func TestMissingInfrastructureOfCatalog(t *testing.T) {
	template, listed := withOwnInfrastructure("workers", "later")
	c := newCell(template, listed)
	got, err := c.reconcile(t, template.Name)
	if err != nil {
		t.Fatal(err)
	}
	conditions := got.StatusConditions()
	valid := conditions.Get(v1alpha1.ConditionOfferingsValid)
	if !conditions.Root().IsTrue() || !valid.IsFalse() || valid.Reason != v1alpha1.ReasonReferenceNotFound || !strings.Contains(valid.Message, "type-later/a/on-demand") || !strings.Contains(valid.Message, "later") {
		t.Errorf("got Ready %+v and OfferingsValid %+v, want only the second to be False", conditions.Get(status.ConditionReady), valid)
	}
	if err := c.Create(t.Context(), named(infrastructureKind, "later")); err != nil {
		t.Fatal(err)
	}
	if got, err = c.reconcile(t, template.Name); err != nil {
		t.Fatal(err)
	}
	if valid := got.StatusConditions().Get(v1alpha1.ConditionOfferingsValid); !valid.IsTrue() {
		t.Errorf("got OfferingsValid %+v after the template was created, want True", valid)
	}
}

// A kind that cannot be listed, and that only a type of a catalog names, harms no other type either.
func TestInfrastructureOfCatalogThatCannotBeListed(t *testing.T) {
	template, listed := withOwnInfrastructure("workers", "unlisted")
	c := newCell(template, listed, named(infrastructureKind, "unlisted"))
	c.fails = func(_ string, object any, name string) error {
		if _, is := object.(*unstructured.Unstructured); is && name == "unlisted" {
			return reference.Unlisted{Kind: infrastructureKind.GroupKind()}
		}
		return nil
	}
	for range 2 { // the first one adds the finalizer
		if _, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: template.Name}}); err != nil {
			t.Fatal(err)
		}
	}
	stored := &v1alpha1.KarpenterMachineTemplate{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(template), stored); err != nil {
		t.Fatal(err)
	}
	conditions := stored.StatusConditions()
	valid := conditions.Get(v1alpha1.ConditionOfferingsValid)
	if !conditions.Root().IsTrue() || !valid.IsFalse() || valid.Reason != v1alpha1.ReasonObjectsNotReadable || !strings.Contains(valid.Message, "type-unlisted/a/on-demand") || !strings.Contains(valid.Message, "check that the operator has the rights") {
		t.Errorf("got %+v and OfferingsValid %+v, want only the second to be False", conditions.Root(), valid)
	}
	c.fails = nil
	if got, err := c.reconcile(t, template.Name); err != nil || !got.StatusConditions().Get(v1alpha1.ConditionOfferingsValid).IsTrue() {
		t.Errorf("after the kind was listed, got %v and %+v", err, got.StatusConditions().Get(v1alpha1.ConditionOfferingsValid))
	}
}

// A failed read of infrastructure that only a catalog names is an error like any other, and a kind that cannot be listed is
// one for the template that names it itself.
func TestInfrastructureThatCannotBeRead(t *testing.T) {
	shared, listed := withOwnInfrastructure("workers")
	own := newTemplate()
	for name, tc := range map[string]struct {
		objects []client.Object
		err     error
	}{
		"of a catalog, and no answer":             {objects: []client.Object{shared, listed}, err: errors.New("no answer")},
		"of the template, and it is unlisted":     {objects: []client.Object{own}, err: reference.Unlisted{Kind: infrastructureKind.GroupKind()}},
		"of the template, and there is no answer": {objects: []client.Object{own}, err: errors.New("no answer")},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCell(tc.objects...)
			c.fails = func(_ string, object any, name string) error {
				if _, is := object.(*unstructured.Unstructured); is && name == "workers" {
					return tc.err
				}
				return nil
			}
			got, err := c.reconcile(t, "general")
			if condition := got.StatusConditions().Get(v1alpha1.ConditionInfrastructureReady); err == nil || !condition.IsUnknown() {
				t.Errorf("got %v and %+v, want an error and that it is unknown", err, condition)
			}
		})
	}
}

// A template with a pool of its current revision that cannot create Machines is not Ready. Pools of earlier revisions, and of
// other templates, do not matter.
func TestUnusablePools(t *testing.T) {
	poolKind := infrastructureKind
	poolKind.Kind = "TestMachinePool"
	definition := named(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, "testmachinepools.infrastructure.cluster.x-k8s.io")
	definition.SetNamespace("")
	definition.SetLabels(map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta2"})
	for name, tc := range map[string]struct {
		managed bool
		change  func(*clusterv1.MachinePool)
		want    bool // whether the template is not Ready
	}{
		"its pool":                      {},
		"its pool, with other replicas": {managed: true, want: true},
		"one of an earlier revision":    {managed: true, change: func(p *clusterv1.MachinePool) { p.Name = "earlier" }},
		"one of another template":       {managed: true, change: func(p *clusterv1.MachinePool) { p.Labels[v1alpha1.TemplateLabel] = "other" }},
	} {
		t.Run(name, func(t *testing.T) {
			template := newTemplate()
			template.Spec.ScalableResource.Kind = v1alpha1.ScalableResourceKindMachinePool
			template.Spec.Template.Spec.InfrastructureRef.Kind = poolKind.Kind
			base := named(poolKind, "workers")
			c := newCell(template, newCatalog("a", "b"), base, definition)
			var pools []*clusterv1.MachinePool
			for _, zone := range []string{"a", "b"} {
				launch, err := generate.LaunchOf(t.Context(), c.clusters, c.catalog, template, catalog.Key{InstanceType: "m5", Zone: zone, CapacityType: "on-demand"})
				if err != nil {
					t.Fatal(err)
				}
				pools = append(pools, launch.Generated.Resource.API().(*clusterv1.MachinePool))
			}
			slices.SortFunc(pools, func(a, b *clusterv1.MachinePool) int { return strings.Compare(a.Name, b.Name) })
			usable, pool := pools[0], pools[1]
			if tc.managed {
				metav1.SetMetaDataAnnotation(&pool.ObjectMeta, clusterv1.ReplicasManagedByAnnotation, "external-autoscaler")
			}
			if tc.change != nil {
				tc.change(pool)
			}
			for _, created := range []client.Object{usable, pool} {
				if err := c.Create(t.Context(), created); err != nil {
					t.Fatal(err)
				}
			}
			got, err := c.reconcile(t, "general")
			if err != nil {
				t.Fatal(err)
			}
			condition := got.StatusConditions().Get(v1alpha1.ConditionInfrastructureReady)
			if condition.IsTrue() == tc.want || tc.want && (condition.Reason != v1alpha1.ReasonScalableResourceUnusable || !strings.Contains(condition.Message, "another controller sets the replicas")) {
				t.Errorf("got %+v", condition)
			}
		})
	}
}
