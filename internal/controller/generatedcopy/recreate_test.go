// SPDX-License-Identifier: Apache-2.0

package generatedcopy

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/enqueue"
	"github.com/karpenter-capi/karpenter-capi/internal/generate"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// Kinds of templates of providers.
var (
	machineTemplate = schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1", Kind: "TestMachineTemplate"}
	configTemplate  = schema.GroupVersionKind{Group: "bootstrap.cluster.x-k8s.io", Version: "v1", Kind: "TestConfigTemplate"}
)

// newObject returns an object of the kind of copies.
func newObject(name string, annotations map[string]string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{}}}}}
	object.SetGroupVersionKind(machineTemplate)
	object.SetNamespace(fixture.Served.Namespace)
	object.SetName(name)
	object.SetAnnotations(annotations)
	return object
}

// newReconciler returns a reconciler that knows the kind of copies, with clusters that have objects.
func newReconciler(objects ...client.Object) *Reconciler {
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name}}
	both := fixture.Cluster{Client: fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(append(objects, definition(machineTemplate), definition(configTemplate), cluster)...).
		WithIndex(&clusterv1.MachineSet{}, clients.ResourceField, func(o client.Object) []string { return []string{clients.ResourceOf(o)} }).
		WithIndex(&clusterv1.Machine{}, clients.ResourceField, func(o client.Object) []string { return []string{clients.ResourceOf(o)} }).
		WithIndex(&karpv1.NodeClaim{}, clients.NodeClaimTemplateField, func(o client.Object) []string {
			return []string{o.(*karpv1.NodeClaim).Spec.NodeClassRef.Name}
		}).Build()}
	clusters := &clients.Clusters{Cluster: fixture.Served, Workload: both, Management: both}
	r := NewReconciler(clusters, catalog.New(clusters), clocktesting.NewFakeClock(fixture.Noon))
	r.kinds = enqueue.NewKinds(nil, nil, machineTemplate, configTemplate)
	return r
}

// followGone lets a template follow a MachineDeployment that does not exist any more.
func followGone(template *v1alpha1.KarpenterMachineTemplate) {
	template.Spec.Template = v1alpha1.MachineTemplate{From: &v1alpha1.MachineTemplateSource{MachineDeployment: "gone"}}
}

// A copy that a resource refers to is created again if a user has deleted it: no Machine could be created, or
// repaired, without it. What the template no longer generates, or what refers to it ends, is not.
func TestDeletedCopiesAreCreatedAgain(t *testing.T) {
	template := &v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "general", Generation: 1}}
	template.Spec.Template.Spec.InfrastructureRef = &clusterv1.ContractVersionedObjectReference{APIGroup: machineTemplate.Group, Kind: machineTemplate.Kind, Name: "workers"}
	listed := fixture.Listing(template, v1alpha1.InstanceType{
		Name:      "small",
		Capacity:  corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi")},
		Offerings: []v1alpha1.Offering{{Zones: []v1alpha1.Zone{"a"}, CapacityType: karpv1.CapacityTypeOnDemand, Price: "0.2"}},
	})
	template.Spec.Template.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{APIGroup: configTemplate.Group, Kind: configTemplate.Kind, Name: "config"}
	ofConfig := fixture.Patch("/spec/template/spec/arguments", "{{ .instanceType }}")
	ofConfig.Target = v1alpha1.PatchTargetBootstrap
	template.Spec.Patches = []v1alpha1.Patch{fixture.Patch("/spec/template/spec/instanceType", "{{ .instanceType }}"), ofConfig}
	config := newObject("config", nil)
	config.SetGroupVersionKind(configTemplate)
	for name, tc := range map[string]struct {
		present  bool // the copy exists
		refused  bool // the API server creates nothing
		earlier  bool // a resource of an earlier state of the template refers to it, too
		resource func(*clusterv1.MachineDeployment)
		template func(*v1alpha1.KarpenterMachineTemplate) // since the resource was generated
		listed   func(*v1alpha1.InstanceTypeCatalog)      // since then
		want     bool
	}{
		"it was deleted":                        {want: true},
		"it was deleted, and cannot be created": {refused: true},
		"it was deleted, and is shared":         {earlier: true, want: true},
		"it exists":                             {present: true, want: true},
		"its resource ends": {resource: func(d *clusterv1.MachineDeployment) {
			d.DeletionTimestamp, d.Finalizers = new(metav1.NewTime(fixture.Noon)), []string{"x"}
		}},
		"its template has changed":                                  {template: func(t *v1alpha1.KarpenterMachineTemplate) { t.Spec.Template.Spec.Version = "v1.36.3" }},
		"what its template follows no longer exists":                {template: followGone},
		"it exists, and what its template follows no longer exists": {present: true, template: followGone, want: true},
		"its offering is not offered":                               {listed: func(c *v1alpha1.InstanceTypeCatalog) { c.Spec.InstanceTypes[0].Offerings[0].Zones[0] = "b" }},
	} {
		t.Run(name, func(t *testing.T) {
			template, listed := template.DeepCopy(), listed.DeepCopy()
			unused := newReconciler(newObject("workers", nil), config, listed.DeepCopy())
			launch, err := generate.LaunchOf(t.Context(), unused.clusters, unused.catalog, template, catalog.Key{InstanceType: "small", Zone: "a", CapacityType: karpv1.CapacityTypeOnDemand})
			if err != nil {
				t.Fatal(err)
			}
			deployment := launch.Generated.Resource.API().(*clusterv1.MachineDeployment)
			if tc.resource != nil {
				tc.resource(deployment)
			}
			if tc.template != nil {
				tc.template(template)
				template.Generation++
			}
			if tc.listed != nil {
				tc.listed(listed)
			}
			objects := []client.Object{newObject("workers", nil), config, deployment, listed}
			if tc.earlier {
				earlier := deployment.DeepCopy()
				earlier.Name = "a-" + deployment.Name // it is listed first
				objects = append(objects, earlier)
			}
			copies := launch.Generated.Objects
			if len(copies) != 2 {
				t.Fatalf("got %d copies, want 2", len(copies))
			}
			for _, object := range copies {
				if tc.present {
					objects = append(objects, object.DeepCopyObject().(client.Object))
				}
			}
			r := newReconciler(objects...)
			if tc.refused {
				refused := errors.New("refused")
				management := r.clusters.Management.GetClient()
				r.clusters.Management = fixture.Cluster{Client: interceptor.NewClient(management.(client.WithWatch), interceptor.Funcs{
					Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return refused },
				})}
				resources, err := scalable.List(t.Context(), r.clusters)
				if err != nil {
					t.Fatal(err)
				}
				if _, _, err := r.keepCopies(t.Context(), template.Name, template, resources); !errors.Is(err, refused) {
					t.Errorf("got %v, want that it is tried again", err)
				}
			} else {
				keepCopies(t, r, template)
			}
			for _, object := range copies {
				after := &unstructured.Unstructured{}
				after.SetGroupVersionKind(object.GetObjectKind().GroupVersionKind())
				err := r.clusters.Management.GetClient().Get(t.Context(), client.ObjectKeyFromObject(object), after)
				if client.IgnoreNotFound(err) != nil || (err == nil) != tc.want {
					t.Errorf("%s: got %v, want that it exists: %t", object.GetName(), err, tc.want)
				}
			}
		})
	}
}

// What Cluster API reads from the annotations of templates follows the base, without a rollout. A copy whose base
// no longer exists keeps them. Its owners are the resources that refer to it, oldest first.
func TestCopiesFollowTheirBase(t *testing.T) {
	resource := func(name string, age time.Duration) *clusterv1.MachineDeployment {
		deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: name, UID: "uid",
			CreationTimestamp: metav1.NewTime(fixture.Noon.Add(-age)), Labels: scalable.GeneratedLabels(fixture.Served, "general")}}
		deployment.Spec.Template.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: machineTemplate.Group, Kind: machineTemplate.Kind, Name: "copy"}
		return deployment
	}
	const before, after = "before", "after"
	for name, tc := range map[string]struct {
		base map[string]string
		gone bool
		want string
	}{
		"it is as before":        {base: map[string]string{clusterv1.MachineSetSkipPreflightChecksAnnotation: before}, want: before},
		"it has changed":         {base: map[string]string{clusterv1.MachineSetSkipPreflightChecksAnnotation: after}, want: after},
		"it has the key no more": {},
		"it no longer exists":    {gone: true, want: before},
	} {
		t.Run(name, func(t *testing.T) {
			object := newObject("copy", map[string]string{
				clusterv1.MachineSetSkipPreflightChecksAnnotation: before, "mine": "x", clusterv1.TemplateClonedFromNameAnnotation: "workers",
				clusterv1.TemplateClonedFromGroupKindAnnotation: machineTemplate.GroupKind().String(),
			})
			object.SetLabels(scalable.GeneratedLabels(fixture.Served, "general"))
			objects := []client.Object{object, resource("a", time.Minute), resource("b", time.Hour), resource("c", time.Minute)}
			if !tc.gone {
				objects = append(objects, newObject("workers", tc.base))
			}
			r := newReconciler(objects...)
			keepCopies(t, r, nil)
			if err := r.clusters.Management.GetClient().Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				t.Fatal(err)
			}
			if got := object.GetAnnotations(); got[clusterv1.MachineSetSkipPreflightChecksAnnotation] != tc.want || got["mine"] != "x" {
				t.Errorf("got annotations %v, want %q", got, tc.want)
			}
			owners := lo.Map(object.GetOwnerReferences(), func(owner metav1.OwnerReference, _ int) string { return owner.Name })
			if diff := cmp.Diff([]string{"b", "a", "c"}, owners); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
			version := object.GetResourceVersion()
			resources, err := scalable.List(t.Context(), r.clusters)
			if err != nil {
				t.Fatal(err)
			}
			slices.Reverse(resources) // a cache has no order
			if _, _, err := r.keepCopies(t.Context(), "general", nil, resources); err != nil {
				t.Fatal(err)
			}
			if err := r.clusters.Management.GetClient().Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil || object.GetResourceVersion() != version {
				t.Errorf("a settled copy was written again: %v", err)
			}
			if tc.gone {
				return
			}
			// The owners stay when only the base changes.
			management, base := r.clusters.Management.GetClient(), newObject("workers", nil)
			if err := management.Get(t.Context(), client.ObjectKeyFromObject(base), base); err != nil {
				t.Fatal(err)
			}
			base.SetAnnotations(map[string]string{clusterv1.MachineSetSkipPreflightChecksAnnotation: "later"})
			if err := management.Update(t.Context(), base); err != nil {
				t.Fatal(err)
			}
			keepCopies(t, r, nil)
			if err := management.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil || object.GetAnnotations()[clusterv1.MachineSetSkipPreflightChecksAnnotation] != "later" {
				t.Errorf("after a later change: got annotations %v and %v", object.GetAnnotations(), err)
			}
		})
	}
}

// While the base of a copy cannot be read, its annotations are not known: that is tried again.
func TestCopiesWaitForTheirBase(t *testing.T) {
	object := newObject("copy", map[string]string{
		clusterv1.TemplateClonedFromNameAnnotation: "workers", clusterv1.TemplateClonedFromGroupKindAnnotation: machineTemplate.GroupKind().String(),
	})
	object.SetLabels(scalable.GeneratedLabels(fixture.Served, "general"))
	deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: "a", Labels: scalable.GeneratedLabels(fixture.Served, "general")}}
	deployment.Spec.Template.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: machineTemplate.Group, Kind: machineTemplate.Kind, Name: "copy"}
	r := newReconciler(object, deployment)
	resources, err := scalable.List(t.Context(), r.clusters)
	if err != nil {
		t.Fatal(err)
	}
	fails := errors.New("unreadable")
	r.clusters.Management = fixture.Cluster{Client: interceptor.NewClient(r.clusters.Management.GetClient().(client.WithWatch), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return fails
		},
	})}
	if _, _, err := r.keepCopies(t.Context(), "general", nil, resources); !errors.Is(err, fails) {
		t.Errorf("got %v, want that it is tried again", err)
	}
}
