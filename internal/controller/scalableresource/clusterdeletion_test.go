// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/generate"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// A waiting claim gets a new resource, an adopted one, or higher replicas, as long as the Cluster
// stays. If the Cluster is being deleted or paused, nothing is written, also if only the API server
// knows it.
func TestNothingIsCreatedInAClusterThatEnds(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	served := types.NamespacedName{Namespace: "fleet", Name: "served"}
	stays := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: served.Name, Finalizers: []string{clusterv1.ClusterFinalizer}}}
	deleting := stays.DeepCopy()
	deleting.DeletionTimestamp = new(metav1.NewTime(now))
	paused := stays.DeepCopy()
	paused.Spec.Paused = new(true)
	generated := func(t *testing.T) client.Object {
		t.Helper()
		object := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: generatedName(t, served, stays), Labels: map[string]string{v1alpha1.TemplateLabel: "general"}}}
		object.Spec.Replicas = new(int32(0))
		return object
	}
	discovered := func(*testing.T) client.Object {
		object := existing()
		object.Namespace = served.Namespace
		object.Spec.Replicas = new(int32(0))
		return object
	}
	adopted := func(t *testing.T) client.Object {
		object := discovered(t)
		object.SetLabels(map[string]string{"discover": "yes", v1alpha1.TemplateLabel: "general", v1alpha1.InstanceTypeLabel: "existing", v1alpha1.CapacityTypeLabel: "on-demand"})
		object.GetAnnotations()[v1alpha1.AdoptedAnnotation], object.GetAnnotations()[v1alpha1.UnmanagedReplicasAnnotation] = now.Format(time.RFC3339), "0"
		return object
	}
	for what, tc := range map[string]struct {
		object       func(*testing.T) client.Object // nil for none
		instanceType string
		want         []string // the writes in a Cluster that stays
	}{
		"a resource that is created": {instanceType: "small", want: []string{"create AWSMachineTemplate", "create MachineDeployment"}},
		"replicas that are raised":   {object: generated, instanceType: "small", want: []string{"patch MachineDeployment"}},
		"adopted replicas":           {object: adopted, instanceType: "existing", want: []string{"patch MachineDeployment"}},
		"a resource that is adopted": {object: discovered, instanceType: "existing", want: []string{"patch MachineDeployment"}},
	} {
		for when, state := range map[string]struct {
			cached, live *clusterv1.Cluster
		}{
			"stays":                              {cached: stays, live: stays},
			"is being deleted":                   {cached: deleting, live: deleting},
			"is being deleted, the cache lags":   {cached: stays, live: deleting},
			"does not exist, and the cache lags": {cached: stays},
			"is paused, and the cache lags":      {cached: stays, live: paused},
		} {
			t.Run(what+", in a Cluster that "+when, func(t *testing.T) {
				claim := launchedClaim(tc.instanceType)
				claim.Annotations[v1alpha1.ScalableResourceAnnotation] = "existing"
				if tc.instanceType == "small" {
					claim.Annotations[v1alpha1.ScalableResourceAnnotation] = generatedName(t, served, stays)
				}
				objects := []client.Object{state.cached, claim}
				if tc.object != nil {
					objects = append(objects, tc.object(t))
				}
				var writes []string
				clusters := clustersWith(served, state.live, &writes, objects...)
				r := newReconciler(clusters, catalog.New(clusters), silent{}, clocktesting.NewFakeClock(now))
				_, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: claim.Annotations[v1alpha1.ScalableResourceAnnotation]}})
				if err != nil {
					t.Fatal(err)
				}
				want := tc.want
				if state.live != stays {
					want = nil
				}
				if diff := cmp.Diff(want, writes); diff != "" {
					t.Errorf("writes (-want +got):\n%s", diff)
				}
				if what != "adopted replicas" || state.live != stays {
					return
				}
				after := &clusterv1.MachineDeployment{}
				if err := clusters.Management.GetClient().Get(t.Context(), types.NamespacedName{Namespace: served.Namespace, Name: "existing"}, after); err != nil || *after.Spec.Replicas != 1 {
					t.Errorf("got %d adopted replicas (%v), want 1", *after.Spec.Replicas, err)
				}
			})
		}
	}
}

// template returns a template with the instance type of listed, whose discovery finds others.
func template() *v1alpha1.KarpenterMachineTemplate {
	t := &v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "general", UID: "1", Generation: 1}}
	t.Spec.Template.Spec.InfrastructureRef = &clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "AWSMachineTemplate", Name: "workers"}
	t.Spec.Patches = []v1alpha1.Patch{{Target: v1alpha1.PatchTargetInfrastructure, JSONPatches: []v1alpha1.JSONPatch{
		{Op: "add", Path: "/spec/template/spec/instanceType", ValueFrom: &v1alpha1.JSONPatchValue{Template: "{{ .instanceType }}"}},
	}}}
	t.Spec.CatalogRefs = []v1alpha1.CatalogReference{{Name: listed().Name}}
	t.Spec.Discovery = &v1alpha1.Discovery{MachineDeployments: &v1alpha1.MachineDeploymentDiscovery{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"discover": "yes"}}}}
	return t
}

// listed returns the catalog of template, with one instance type.
func listed() *v1alpha1.InstanceTypeCatalog {
	return fixture.CatalogOf(v1alpha1.InstanceType{
		Name:      "small",
		Capacity:  map[corev1.ResourceName]resource.Quantity{"cpu": resource.MustParse("2"), "memory": resource.MustParse("8Gi")},
		Offerings: []v1alpha1.Offering{{CapacityType: karpv1.CapacityTypeOnDemand, Price: "0.1"}},
	})
}

// existing returns a MachineDeployment that the discovery of template finds.
func existing() *clusterv1.MachineDeployment {
	deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: fixture.Served.Namespace, Name: "existing", Labels: map[string]string{"discover": "yes"},
		Annotations: map[string]string{
			"capacity.cluster-autoscaler.kubernetes.io/cpu": "2", "capacity.cluster-autoscaler.kubernetes.io/memory": "8Gi",
			v1alpha1.AdoptableAnnotation: "true", v1alpha1.DiscoveredInstanceTypeAnnotation: "existing", v1alpha1.DiscoveredPriceAnnotation: "0.1",
		},
	}}
	deployment.Spec.Template.Spec.InfrastructureRef = *template().Spec.Template.Spec.InfrastructureRef
	return deployment
}

// launchedClaim returns a claim with the given instance type that waits for its Machine.
func launchedClaim(instanceType string) *karpv1.NodeClaim {
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: "c", UID: "c", Annotations: map[string]string{},
		Labels: map[string]string{corev1.LabelInstanceTypeStable: instanceType, karpv1.CapacityTypeLabelKey: karpv1.CapacityTypeOnDemand, karpv1.NodePoolLabelKey: "pool"},
	}}
	claim.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: v1alpha1.Group, Kind: v1alpha1.Kind, Name: "general"}
	claim.StatusConditions().SetTrue(karpv1.ConditionTypeLaunched)
	return claim
}

// generatedName returns the name of the generated resource of instance type small.
func generatedName(t *testing.T, served types.NamespacedName, cluster *clusterv1.Cluster) string {
	t.Helper()
	clusters := clustersWith(served, cluster, &[]string{}, cluster)
	launch, err := generate.LaunchOfClaim(t.Context(), clusters, catalog.New(clusters), launchedClaim("small"))
	if err != nil {
		t.Fatal(err)
	}
	return launch.Resource
}

// clustersWith returns clusters with one API server and what a template needs. It records their
// writes. The API server has another Cluster than the cache, or none.
func clustersWith(served types.NamespacedName, live *clusterv1.Cluster, writes *[]string, objects ...client.Object) *clients.Clusters {
	base := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{}}}}}
	base.SetAPIVersion("infrastructure.cluster.x-k8s.io/v1beta2")
	base.SetKind("AWSMachineTemplate")
	base.SetNamespace(served.Namespace)
	base.SetName("workers")
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	crd.SetName("awsmachinetemplates.infrastructure.cluster.x-k8s.io")
	crd.SetLabels(map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta2"})
	kindOf := func(c client.Client, object client.Object) string {
		gvk, err := c.GroupVersionKindFor(object)
		if err != nil {
			return err.Error()
		}
		return gvk.Kind
	}
	cached := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(append(objects, template(), listed(), base, crd)...).WithStatusSubresource(&karpv1.NodeClaim{}).
		WithIndex(&clusterv1.MachineSet{}, clients.ResourceField, func(o client.Object) []string { return []string{clients.ResourceOf(o)} }).
		WithIndex(&clusterv1.Machine{}, clients.ResourceField, func(o client.Object) []string { return []string{clients.ResourceOf(o)} }).
		WithIndex(&karpv1.NodeClaim{}, clients.NodeClaimResourceField, func(o client.Object) []string {
			return []string{o.GetAnnotations()[v1alpha1.ScalableResourceAnnotation]}
		}).
		WithIndex(&karpv1.NodeClaim{}, clients.NodeClaimTemplateField, func(o client.Object) []string {
			return []string{o.(*karpv1.NodeClaim).Spec.NodeClassRef.Name}
		}).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
				*writes = append(*writes, "create "+kindOf(c, object))
				return c.Create(ctx, object, opts...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
				*writes = append(*writes, "patch "+kindOf(c, object))
				return c.Patch(ctx, object, patch, opts...)
			},
		}).Build()
	api := fake.NewClientBuilder().WithScheme(scheme.Scheme)
	if live != nil {
		api = api.WithObjects(live)
	}
	both := fixture.Cluster{Client: cached, Live: api.Build()}
	return &clients.Clusters{Cluster: served, Workload: both, Management: both}
}
