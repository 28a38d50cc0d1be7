// SPDX-License-Identifier: Apache-2.0

package instancetypecatalog

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/awslabs/operatorpkg/status"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

func refersTo(names ...string) v1alpha1.KarpenterMachineTemplate {
	template := v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "t"}}
	template.Spec.CatalogRefs = lo.Map(names, func(name string, _ int) v1alpha1.CatalogReference { return v1alpha1.CatalogReference{Name: name} })
	return template
}

func TestSetStatus(t *testing.T) {
	usable := fixture.Catalog().Spec.InstanceTypes
	unusable := *usable[0].DeepCopy()
	unusable.Name, unusable.Offerings[0].Price = "bad", "cheap"
	for name, tc := range map[string]struct {
		types     []v1alpha1.InstanceType
		templates []v1alpha1.KarpenterMachineTemplate
		want      v1alpha1.InstanceTypeCatalogStatus
		problem   string // empty if all instance types can be used
		ready     string // reason of InstanceTypesReady if it is False
	}{
		"empty":                           {ready: v1alpha1.ReasonNoInstanceTypes},
		"with nothing usable":             {types: []v1alpha1.InstanceType{unusable}, problem: "1 of 1 instance types cannot be used: instance type bad: ", ready: v1alpha1.ReasonInstanceTypesInvalid},
		"usable":                          {types: usable[:1], want: v1alpha1.InstanceTypeCatalogStatus{InstanceTypes: 1, Offerings: int32(len(usable[0].Offerings))}},
		"with an unusable instance type":  {types: []v1alpha1.InstanceType{usable[0], unusable}, want: v1alpha1.InstanceTypeCatalogStatus{InstanceTypes: 1, Offerings: int32(len(usable[0].Offerings))}, problem: "1 of 2 instance types cannot be used: instance type bad: "},
		"in use by two of four templates": {templates: []v1alpha1.KarpenterMachineTemplate{refersTo("c"), refersTo(), refersTo("x", "c"), refersTo("x")}, want: v1alpha1.InstanceTypeCatalogStatus{Templates: 2}, ready: v1alpha1.ReasonNoInstanceTypes},
	} {
		t.Run(name, func(t *testing.T) {
			catalog := &v1alpha1.InstanceTypeCatalog{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
			catalog.Spec.InstanceTypes = tc.types
			catalog.Status.InstanceTypes, catalog.Status.Offerings, catalog.Status.Templates = 9, 9, 9
			setStatus(catalog, tc.templates)
			if diff := cmp.Diff(tc.want, catalog.Status, cmpopts.IgnoreFields(v1alpha1.InstanceTypeCatalogStatus{}, "Conditions")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			valid := catalog.StatusConditions().Get(v1alpha1.ConditionInstanceTypesValid)
			if valid.IsTrue() != (tc.problem == "") || !strings.HasPrefix(valid.Message, tc.problem) {
				t.Errorf("got %s with message %q, want %q", valid.Status, valid.Message, tc.problem)
			}
			ready := catalog.StatusConditions().Get(v1alpha1.ConditionInstanceTypesReady)
			if root := catalog.StatusConditions().Root(); ready.IsTrue() != (tc.ready == "") || tc.ready != "" && ready.Reason != tc.ready || root.Status != ready.Status {
				t.Errorf("got %+v and %+v, want the reason %q", ready, root, tc.ready)
			}
		})
	}
}

// A catalog with more offerings than an operator can hold says so with a reason of its own.
func TestTooManyOfferings(t *testing.T) {
	found := &v1alpha1.InstanceTypeCatalog{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	shared := v1alpha1.Offering{Price: "1"}
	for i := range 32 {
		shared.Zones = append(shared.Zones, v1alpha1.Zone(fmt.Sprint("zone-", i)))
	}
	found.Spec.Offerings = slices.Repeat([]v1alpha1.Offering{shared}, 64)
	for i := range 100 {
		found.Spec.InstanceTypes = append(found.Spec.InstanceTypes, v1alpha1.InstanceType{Name: fmt.Sprint("type-", i), Capacity: fixture.Catalog().Spec.InstanceTypes[0].Capacity})
	}
	setStatus(found, nil)
	valid := found.StatusConditions().Get(v1alpha1.ConditionInstanceTypesValid)
	if valid.Reason != v1alpha1.ReasonTooManyOfferings || !strings.Contains(valid.Message, "it has 204800 offerings, and a catalog can have 50000") {
		t.Errorf("got %+v", valid)
	}
	if found.Status.InstanceTypes != 0 || found.Status.Offerings != 0 {
		t.Errorf("got %d instance types with %d offerings, want none", found.Status.InstanceTypes, found.Status.Offerings)
	}
}

// An adjustment of prices that has no effect is reported, and costs instance types nothing.
func TestAdjustments(t *testing.T) {
	found := &v1alpha1.InstanceTypeCatalog{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	found.Spec.InstanceTypes = fixture.Catalog().Spec.InstanceTypes[:1]
	valid := func() *status.Condition {
		setStatus(found, nil)
		if conditions := found.StatusConditions(); !conditions.Root().IsTrue() || !conditions.IsTrue(v1alpha1.ConditionInstanceTypesValid) {
			t.Errorf("got %+v", found.Status.Conditions)
		}
		return found.StatusConditions().Get(v1alpha1.ConditionPriceAdjustmentsValid)
	}
	if condition := valid(); condition != nil {
		t.Errorf("without adjustments: got %+v", condition)
	}
	good := v1alpha1.PriceAdjustment{Name: "good", DiscountPercent: "5"}
	bad := v1alpha1.PriceAdjustment{Name: "bad", DiscountPercent: "5", Requirements: []v1alpha1.OfferingRequirement{
		{Key: v1alpha1.InstanceFamilyLabel, Operator: v1alpha1.RequirementIn, Values: []v1alpha1.LabelValue{"none"}},
	}}
	found.Spec.Pricing = &v1alpha1.CatalogPricing{Adjustments: []v1alpha1.PriceAdjustment{good}}
	if condition := valid(); !condition.IsTrue() {
		t.Errorf("with a good one: got %+v", condition)
	}
	found.Spec.Pricing.Adjustments = append(found.Spec.Pricing.Adjustments, bad)
	const want = "1 of 2 adjustments of prices have no effect: adjustment bad: no offering meets its requirements"
	if condition := valid(); !condition.IsFalse() || condition.Reason != v1alpha1.ReasonAdjustmentsInvalid || condition.Message != want {
		t.Errorf("with a bad one: got %+v, want %q", condition, want)
	}
	found.Spec.Pricing = nil
	if condition := valid(); condition != nil {
		t.Errorf("without adjustments again: got %+v", condition)
	}
}

// An event of a template concerns the catalogs that it refers to.
func TestOfTemplate(t *testing.T) {
	template := refersTo("a", "b")
	request := func(name string) reconcile.Request {
		return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
	}
	for name, tc := range map[string]struct {
		object client.Object
		want   []reconcile.Request
	}{
		"two catalogs": {object: &template, want: []reconcile.Request{request("a"), request("b")}},
		"none":         {object: &v1alpha1.KarpenterMachineTemplate{}},
		"another kind": {object: &karpv1.NodeClaim{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ofTemplate(t.Context(), tc.object), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The status is written if it changes, and not again. A catalog that no longer exists is no error.
func TestReconcile(t *testing.T) {
	stored := &v1alpha1.InstanceTypeCatalog{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	stored.Spec.InstanceTypes = fixture.Catalog().Spec.InstanceTypes[:1]
	template := refersTo("c")
	clusters := fixture.Clusters()
	clusters.Workload = fixture.Cluster{Client: fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(stored, &template).WithStatusSubresource(stored).Build()}
	reconcileOne := func() string {
		t.Helper()
		if _, err := NewReconciler(clusters).Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "c"}}); err != nil {
			t.Fatal(err)
		}
		if err := clusters.Workload.GetClient().Get(t.Context(), client.ObjectKeyFromObject(stored), stored); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return stored.ResourceVersion
	}
	first := reconcileOne()
	if stored.Status.InstanceTypes != 1 || stored.Status.Templates != 1 || !stored.StatusConditions().IsTrue(v1alpha1.ConditionInstanceTypesValid) {
		t.Errorf("got status %+v", stored.Status)
	}
	if again := reconcileOne(); again != first {
		t.Error("the status is written again although nothing has changed")
	}
	if err := clusters.Workload.GetClient().Delete(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	reconcileOne()
}
