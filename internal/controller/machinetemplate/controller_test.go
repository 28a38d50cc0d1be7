// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/budget"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/enqueue"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// unwatched is a controller that watches nothing, because the tests call Reconcile.
type unwatched struct{ controller.Controller }

func (unwatched) Watch(source.Source) error { return nil }

// cell is a served Cluster in one API server for both clusters. Tests can make its requests
// fail.
type cell struct {
	*Reconciler
	client.Client
	clock *clocktesting.FakeClock
	// published are the reasons of events.
	published []string
	// fails returns the error of a request; nil lets it pass.
	fails func(verb string, object any, name string) error
}

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func (c *cell) Publish(published ...events.Event) {
	for _, event := range published {
		c.published = append(c.published, event.Reason)
	}
}

var infrastructureKind = schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Kind: "TestMachineTemplate"}

func named(kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{}}}}}
	object.SetGroupVersionKind(kind)
	object.SetNamespace("fleet")
	object.SetName(name)
	return object
}

// newCell returns a cell with objects. It has newCatalog, unless one of them is a catalog with its name.
func newCell(objects ...client.Object) *cell {
	if !slices.ContainsFunc(objects, func(o client.Object) bool { return o.GetName() == newCatalog().Name }) {
		objects = append(objects, newCatalog())
	}
	c := &cell{clock: clocktesting.NewFakeClock(began)}
	crd := named(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, "testmachinetemplates.infrastructure.cluster.x-k8s.io")
	crd.SetNamespace("")
	crd.SetLabels(map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta2"})
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "served"}}
	cluster.Status.Initialization = clusterv1.ClusterInitializationStatus{InfrastructureProvisioned: new(true), ControlPlaneInitialized: new(true)}
	fail := func(verb string, object any, name string) error {
		if c.fails == nil {
			return nil
		}
		return c.fails(verb, object, name)
	}
	c.Client = fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(append(objects, crd, cluster, named(infrastructureKind, "workers"))...).
		WithStatusSubresource(&v1alpha1.KarpenterMachineTemplate{}).
		WithIndex(&clusterv1.MachineSet{}, clients.ResourceField, func(o client.Object) []string { return []string{clients.ResourceOf(o)} }).
		WithIndex(&clusterv1.MachineDeployment{}, clients.TopologyEntryField, fixture.EntryOf).
		WithIndex(&karpv1.NodeClaim{}, clients.NodeClaimTemplateField, func(o client.Object) []string {
			return []string{o.(*karpv1.NodeClaim).Spec.NodeClassRef.Name}
		}).
		WithIndex(&resourcev1.ResourceSlice{}, clients.SliceNodeField, func(o client.Object) []string { return []string{*o.(*resourcev1.ResourceSlice).Spec.NodeName} }).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				return errors.Join(fail("get", o, key.Name), w.Get(ctx, key, o, opts...))
			},
			List: func(ctx context.Context, w client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				return errors.Join(fail("list", list, ""), w.List(ctx, list, opts...), rotate(list))
			},
			SubResourcePatch: func(ctx context.Context, w client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				if err := errors.Join(fail("patch", o, o.GetName()), onlyStatus(o, p)); err != nil {
					return err
				}
				return w.SubResource(sub).Patch(ctx, o, p, opts...)
			},
		}).Build()
	both := fixture.Cluster{Client: c.Client}
	c.start(&clients.Clusters{Cluster: types.NamespacedName{Namespace: "fleet", Name: "served"}, Workload: both, Management: both, Allowed: fixture.Allowed})
	return c
}

// start starts the reconciler, which remembers nothing.
func (c *cell) start(clusters *clients.Clusters) {
	c.Reconciler = NewReconciler(clusters, catalog.New(clusters), c, c.clock)
	c.kinds = enqueue.NewKinds(unwatched{}, nil)
}

// rotate moves the last item of a list to its front, because a cache does not return it in the order of names.
func rotate(list client.ObjectList) error {
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	if last := len(items) - 1; last > 0 {
		items = append(items[last:], items[:last]...)
	}
	return meta.SetList(list, items)
}

// onlyStatus returns an error if a patch of the status has a spec. The API server ignores it, so it is only large.
func onlyStatus(object client.Object, patch client.Patch) error {
	content, err := patch.Data(object)
	if err != nil {
		return err
	}
	var fields map[string]any
	if err := json.Unmarshal(content, &fields); err != nil {
		return err
	}
	if spec, has := fields["spec"]; has {
		return fmt.Errorf("the patch of the status has the spec %v", spec)
	}
	return nil
}

// newTemplate returns a template with one offering. Its base and its catalog exist in a cell.
func newTemplate() *v1alpha1.KarpenterMachineTemplate {
	template := &v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "general", UID: "1", Generation: 1}}
	template.Spec.Template.Spec.Bootstrap.DataSecretName = new("bootstrap")
	template.Spec.Template.Spec.InfrastructureRef = &clusterv1.ContractVersionedObjectReference{APIGroup: infrastructureKind.Group, Kind: infrastructureKind.Kind, Name: "workers"}
	template.Spec.CatalogRefs = []v1alpha1.CatalogReference{{Name: newCatalog().Name}}
	return template
}

// newCatalog returns the catalog of newTemplate, with one offering or those in the given zones.
func newCatalog(zones ...v1alpha1.Zone) *v1alpha1.InstanceTypeCatalog {
	if len(zones) == 0 {
		zones = []v1alpha1.Zone{"a"}
	}
	return fixture.CatalogOf(v1alpha1.InstanceType{
		Name: "m5", Capacity: quantities("cpu", "2", "memory", "8Gi"),
		Offerings: []v1alpha1.Offering{{Zones: zones, CapacityType: "on-demand", Price: "1"}},
	})
}

// reconcile reconciles the template and returns it as it is stored afterwards.
func (c *cell) reconcile(t *testing.T, name string) (*v1alpha1.KarpenterMachineTemplate, error) {
	t.Helper()
	_, failed := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
	c.fails = nil
	stored := &v1alpha1.KarpenterMachineTemplate{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: name}, stored); err != nil {
		t.Fatal(err)
	}
	return stored, failed
}

// If one part of the status fails, all others are still written.
func TestOneFailureHidesNothingElse(t *testing.T) {
	broken := errors.New("etcdserver: leader changed")
	for name, tc := range map[string]struct {
		fails func(verb string, object any, name string) error
		// unknown are the conditions that cannot be set; the others are True.
		unknown []string
	}{
		// Which templates are those of its control plane is unknown, too.
		"the Cluster cannot be read": {unknown: []string{v1alpha1.ConditionClusterReady, v1alpha1.ConditionVersionReady, v1alpha1.ConditionInstanceTypesReady, v1alpha1.ConditionInfrastructureReady, v1alpha1.ConditionBootstrapReady}, fails: func(_ string, object any, _ string) error {
			if _, is := object.(*clusterv1.Cluster); is {
				return broken
			}
			return nil
		}},
		"the infrastructure template cannot be read": {unknown: []string{v1alpha1.ConditionInfrastructureReady}, fails: func(verb string, _ any, name string) error {
			if verb == "get" && name == "workers" {
				return broken
			}
			return nil
		}},
		"NodeClaims cannot be listed": {unknown: []string{v1alpha1.ConditionInstanceTypesReady}, fails: func(_ string, object any, _ string) error {
			if _, is := object.(*karpv1.NodeClaimList); is {
				return broken
			}
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCell(newTemplate())
			c.fails = tc.fails
			stored, err := c.reconcile(t, "general")
			if err == nil || !strings.Contains(err.Error(), broken.Error()) {
				t.Errorf("got error %v, want %v", err, broken)
			}
			for _, condition := range []string{
				v1alpha1.ConditionClusterReady, v1alpha1.ConditionInfrastructureReady, v1alpha1.ConditionBootstrapReady,
				v1alpha1.ConditionVersionReady, v1alpha1.ConditionInstanceTypesReady, v1alpha1.ConditionOfferingsAvailable,
			} {
				if got := stored.StatusConditions().Get(condition); slices.Contains(tc.unknown, condition) == got.IsTrue() || got.IsFalse() {
					t.Errorf("%s: got %+v", condition, got)
				}
			}
			if stored.StatusConditions().Get(status.ConditionReady).IsTrue() {
				t.Error("the template is Ready, although one condition is unknown")
			}
			if stored, err = c.reconcile(t, "general"); err != nil || !stored.StatusConditions().Get(status.ConditionReady).IsTrue() {
				t.Errorf("after the failure has ended: got %v and %+v", err, stored.Status.Conditions)
			}
		})
	}
}

// A template that cannot be read is not taken for one that no longer exists.
func TestTemplateThatCannotBeRead(t *testing.T) {
	c := newCell(newTemplate())
	c.fails = func(_ string, object any, _ string) error {
		if _, is := object.(*v1alpha1.KarpenterMachineTemplate); is {
			return errors.New("no answer")
		}
		return nil
	}
	if _, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "general"}}); err == nil {
		t.Error("got no error")
	}
}

// A condition of an earlier generation that cannot be set now does not make the template not Ready.
func TestAnEarlierConditionDoesNotDecide(t *testing.T) {
	template := newTemplate()
	template.Spec.Template.Spec.InfrastructureRef.Name = "missing"
	c := newCell(template)
	stored, err := c.reconcile(t, "general")
	if err != nil || !stored.StatusConditions().Get(status.ConditionReady).IsFalse() {
		t.Fatalf("got %v and %+v", err, stored.Status.Conditions)
	}
	stored.Spec.Template.Spec.InfrastructureRef.Name, stored.Generation = "workers", 2
	if err := c.Update(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	c.fails = func(_ string, _ any, name string) error {
		if name == "workers" {
			return errors.New("timeout")
		}
		return nil
	}
	stored, err = c.reconcile(t, "general")
	if ready := stored.StatusConditions().Get(status.ConditionReady); err == nil || !ready.IsUnknown() {
		t.Errorf("got %v and %+v, want that it is unknown", err, ready)
	}
}

// If the status cannot be written, an event reports it, and invalid offerings are closed
// nevertheless. A mark that could not be written is written with the next status.
func TestAStatusThatCannotBeWritten(t *testing.T) {
	template := newTemplate()
	c := newCell(template, newCatalog("a", "b"))
	stored, err := c.reconcile(t, "general")
	if err != nil {
		t.Fatal(err)
	}
	stored.Spec.Patches = []v1alpha1.Patch{{Target: v1alpha1.PatchTargetInfrastructure, EnabledIf: `{{ eq .zone "b" }}`, JSONPatches: []v1alpha1.JSONPatch{{Op: "remove", Path: "/spec/missing"}}}}
	stored.Generation = 2
	if err := c.Update(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	c.fails = func(verb string, _ any, _ string) error {
		if verb == "patch" {
			return errors.New("etcdserver: request is too large")
		}
		return nil
	}
	if stored, err = c.reconcile(t, "general"); err == nil || !strings.Contains(err.Error(), "request is too large") {
		t.Errorf("got %v, want that the status cannot be written", err)
	}
	if diff := cmp.Diff([]string{"StatusNotWritten"}, c.published); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	available := func() map[string]bool {
		instanceTypes, err := c.catalog.InstanceTypes(t.Context(), stored, c.clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		return lo.SliceToMap(instanceTypes[0].Offerings, func(o *cloudprovider.Offering) (string, bool) { return o.Zone(), o.Available })
	}
	if diff := cmp.Diff(map[string]bool{"a": true, "b": false}, available()); diff != "" {
		t.Errorf("available (-want +got):\n%s", diff)
	}

	c.catalog.Remember(stored, v1alpha1.UnavailableOffering{InstanceType: "m5", Zone: "a", CapacityType: "on-demand", Reason: "MachineFailed"}, c.clock.Now())
	if diff := cmp.Diff(map[string]bool{"a": false, "b": false}, available()); diff != "" {
		t.Errorf("available (-want +got):\n%s", diff)
	}
	if stored, err = c.reconcile(t, "general"); err != nil || len(stored.Status.UnavailableOfferings) != 1 || stored.Status.UnavailableOfferings[0].Zone != "a" {
		t.Errorf("got %v and %+v, want the mark", err, stored.Status.UnavailableOfferings)
	}
}

// A message of any length fits into the status.
func TestLongMessagesAreCut(t *testing.T) {
	claim := claimOf("c", "m5", "a", "on-demand")
	claim.StatusConditions().SetTrue(karpv1.ConditionTypeLaunched)
	claim.StatusConditions().SetUnknownWithReason(v1alpha1.ConditionMachineAvailable, v1alpha1.ReasonBlocked, strings.Repeat("x", 2*budget.Message))
	stored, err := newCell(newTemplate(), claim).reconcile(t, "general")
	if err != nil {
		t.Fatal(err)
	}
	if got := stored.StatusConditions().Get(v1alpha1.ConditionMachinesProgressing); !got.IsFalse() || len(got.Message) != budget.Message {
		t.Errorf("got %s with %d bytes, want %d", got.Status, len(got.Message), budget.Message)
	}
}

// The status has room for all conditions. Only a template that is being deleted has all of them.
func TestStatusHasRoomForConditions(t *testing.T) {
	template := newTemplate()
	template.Finalizers = []string{v1alpha1.TerminationFinalizer}
	template.DeletionTimestamp = new(metav1.NewTime(began))
	stored, err := newCell(template).reconcile(t, template.Name)
	if err != nil {
		t.Fatal(err)
	}
	for _, condition := range []string{v1alpha1.ConditionDeletable, v1alpha1.ConditionVersionReady, v1alpha1.ConditionOfferingsValid} {
		if stored.StatusConditions().Get(condition) == nil {
			t.Errorf("the template does not have %s", condition)
		}
	}
	// NodesCurrent is set only while the template is Ready.
	if count := len(stored.Status.Conditions) + 1; count > budget.Conditions {
		t.Errorf("a template can have %d conditions, the status has room for %d", count, budget.Conditions)
	}
}
