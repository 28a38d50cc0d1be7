// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karpv1alpha1 "sigs.k8s.io/karpenter/pkg/apis/v1alpha1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/nodeoverlay"
	"sigs.k8s.io/karpenter/pkg/controllers/state"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// newProvider returns a provider for a template that is Ready, with a small and a large
// type on demand, and for other objects.
func newProvider(change func(*v1alpha1.KarpenterMachineTemplate), objects ...client.Object) (*CloudProvider, client.Client) {
	return newProviderOf(func(t *v1alpha1.KarpenterMachineTemplate, _ *v1alpha1.InstanceTypeCatalog) {
		if change != nil {
			change(t)
		}
	}, objects...)
}

// newProviderOf returns a provider like newProvider, whose catalog can have changes, too.
func newProviderOf(change func(*v1alpha1.KarpenterMachineTemplate, *v1alpha1.InstanceTypeCatalog), objects ...client.Object) (*CloudProvider, client.Client) {
	capacity := func(cpu string) map[corev1.ResourceName]resource.Quantity {
		return map[corev1.ResourceName]resource.Quantity{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("16Gi")}
	}
	template := &v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "general", UID: "1", Generation: 1}}
	template.Spec.Template.Spec.InfrastructureRef = &clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "AWSMachineTemplate", Name: "workers"}
	listed := fixture.CatalogOf(
		v1alpha1.InstanceType{Name: "small", Capacity: capacity("2"), Offerings: []v1alpha1.Offering{{Zones: []v1alpha1.Zone{"a"}, CapacityType: "on-demand", Price: "0.2"}}},
		v1alpha1.InstanceType{Name: "large", Capacity: capacity("8"), Offerings: []v1alpha1.Offering{{Zones: []v1alpha1.Zone{"a"}, CapacityType: "on-demand", Price: "0.8"}}},
	)
	template.Spec.CatalogRefs = []v1alpha1.CatalogReference{{Name: listed.Name}}
	for _, condition := range []string{v1alpha1.ConditionClusterReady, v1alpha1.ConditionInfrastructureReady, v1alpha1.ConditionBootstrapReady, v1alpha1.ConditionVersionReady, v1alpha1.ConditionInstanceTypesReady} {
		template.StatusConditions().SetTrue(condition)
	}
	template.Status.AcceptedHash = "accepted"
	if change != nil {
		change(template, listed)
	}
	objects = append(objects, template, listed,
		object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "awsmachinetemplates.infrastructure.cluster.x-k8s.io", map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta2"}),
		object("infrastructure.cluster.x-k8s.io/v1beta2", "AWSMachineTemplate", "fleet", "workers", nil))
	c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).WithStatusSubresource(&karpv1alpha1.NodeOverlay{}).
		WithIndex(&karpv1.NodeClaim{}, clients.NodeClaimTemplateField, func(o client.Object) []string { return []string{o.(*karpv1.NodeClaim).Spec.NodeClassRef.Name} }).
		Build()
	both := fixture.Cluster{Client: c}
	clusters := &clients.Clusters{Cluster: types.NamespacedName{Namespace: "fleet", Name: "served"}, Workload: both, Management: both, Allowed: fixture.Allowed}
	return New(clusters, catalog.New(clusters), clock.RealClock{}), c
}

func object(apiVersion, kind, namespace, name string, labels map[string]string) client.Object {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{}}}}}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetLabels(labels)
	return o
}

var nodeClassRef = &karpv1.NodeClassReference{Group: v1alpha1.Group, Kind: v1alpha1.Kind, Name: "general"}

// waiting returns a claim of the NodePool named pool that is not launched.
func waiting() *karpv1.NodeClaim {
	c := claim("1", "1Gi")
	c.Labels = map[string]string{karpv1.NodePoolLabelKey: "pool"}
	c.Spec.NodeClassRef = nodeClassRef
	return c
}

// launched returns a claim that has an offering.
func launched(name, instanceType string) *karpv1.NodeClaim {
	c := waiting()
	c.Name, c.UID = name, types.UID(name)
	c.Labels = map[string]string{typeLabel: instanceType, zone: "a", capacityType: "on-demand"}
	c.Annotations = map[string]string{v1alpha1.ScalableResourceAnnotation: "x"}
	return c
}

func TestCreateSaysWhatTheClaimWasLaunchedWith(t *testing.T) {
	var template *v1alpha1.KarpenterMachineTemplate
	provider, _ := newProviderOf(func(t *v1alpha1.KarpenterMachineTemplate, listed *v1alpha1.InstanceTypeCatalog) { template = t })
	created, err := provider.Create(t.Context(), waiting())
	if err != nil {
		t.Fatal(err)
	}
	if created.Annotations[v1alpha1.PriceAnnotation] != "0.2" || created.Annotations[v1alpha1.TemplateRevisionAnnotation] != catalog.RevisionOf(template) || created.Annotations[v1alpha1.ScalableResourceAnnotation] == "" {
		t.Errorf("got annotations %v", created.Annotations)
	}
	if created.Labels[v1alpha1.InstanceCPULabel] != "2" || created.Labels[v1alpha1.InstanceMemoryLabel] != "16384" {
		t.Errorf("got labels %v", created.Labels)
	}
}

func TestCreateKeepsToLimits(t *testing.T) {
	limit := func(count int32) func(*v1alpha1.KarpenterMachineTemplate, *v1alpha1.InstanceTypeCatalog) {
		return func(_ *v1alpha1.KarpenterMachineTemplate, listed *v1alpha1.InstanceTypeCatalog) {
			listed.Spec.InstanceTypes[0].Offerings[0].MaxMachines = &count
		}
	}
	for name, tc := range map[string]struct {
		change    func(*v1alpha1.KarpenterMachineTemplate, *v1alpha1.InstanceTypeCatalog)
		claims    []client.Object
		want      string
		wantError string
	}{
		"no limit":              {claims: []client.Object{launched("x", "small")}, want: "small"},
		"below the limit":       {change: limit(2), claims: []client.Object{launched("x", "small")}, want: "small"},
		"at the limit":          {change: limit(1), claims: []client.Object{launched("x", "small")}, want: "large"},
		"of another offering":   {change: limit(1), claims: []client.Object{launched("x", "large")}, want: "small"},
		"only the claim itself": {change: limit(1), claims: []client.Object{func() client.Object { c := launched("pool-x", "small"); c.UID = "1234"; return c }()}, want: "small"},
		"the template's limit": {change: func(t *v1alpha1.KarpenterMachineTemplate, listed *v1alpha1.InstanceTypeCatalog) {
			t.Spec.MaxMachines = new(int32(1))
		}, claims: []client.Object{launched("x", "large")}, wantError: "have reached maxMachines"},
		"reserved comes first":  {change: reserve(2), claims: []client.Object{launched("x", "small")}, want: "large"},
		"a reservation used up": {change: reserve(1), claims: []client.Object{inReservation(launched("x", "large"))}, want: "small"},
		"a reservation of none": {change: reserve(0), want: "small"},
	} {
		t.Run(name, func(t *testing.T) {
			provider, _ := newProviderOf(tc.change, tc.claims...)
			created, err := provider.Create(t.Context(), waiting())
			if tc.wantError != "" {
				if !cloudprovider.IsInsufficientCapacityError(err) || !strings.Contains(err.Error(), tc.wantError) {
					t.Errorf("got %v, want %q", err, tc.wantError)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := created.Labels[typeLabel]; got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// Of offerings whose capacity is counted, decisions count that the cache does not have yet.
func TestCreateCountsItsDecisions(t *testing.T) {
	named := func(name string) *karpv1.NodeClaim {
		c := waiting()
		c.Name, c.UID = name, types.UID(name)
		return c
	}
	provider, _ := newProviderOf(func(_ *v1alpha1.KarpenterMachineTemplate, listed *v1alpha1.InstanceTypeCatalog) {
		offering := &listed.Spec.InstanceTypes[0].Offerings[0]
		offering.MaxMachines = new(int32(1))
		offering.CapacityFrom = []v1alpha1.CapacitySource{{APIVersion: "metal3.io/v1alpha1", Kind: "BareMetalHost", Free: "true"}}
	}, named("one"), named("two"))
	for _, step := range []struct{ claim, want string }{{"one", "small"}, {"two", "large"}, {"one", "small"}} {
		created, err := provider.Create(t.Context(), named(step.claim))
		if err != nil || created.Labels[typeLabel] != step.want {
			t.Errorf("claim %s got %v and the error %v, want %s", step.claim, created, err, step.want)
		}
	}
}

// An offering that was not accepted is not launched. Nothing is launched before the template
// is examined: after a restart if an offering was not accepted, or when the template has changed.
func TestCreateChoosesWhatWasAccepted(t *testing.T) {
	var template *v1alpha1.KarpenterMachineTemplate
	provider, _ := newProviderOf(func(t *v1alpha1.KarpenterMachineTemplate, listed *v1alpha1.InstanceTypeCatalog) {
		template, t.Status.AcceptedHash = t, ""
	})
	if created, err := provider.Create(t.Context(), waiting()); err == nil || cloudprovider.IsInsufficientCapacityError(err) || cloudprovider.IsNodeClassNotReadyError(err) {
		t.Errorf("got %v and %v before the template was examined: the claim must wait", created, err)
	}
	provider.catalog.SetAccepted(template, sets.New(catalog.Key{InstanceType: "large", Zone: "a", CapacityType: "on-demand"}))
	created, err := provider.Create(t.Context(), waiting())
	if err != nil || created.Labels[typeLabel] != "large" {
		t.Errorf("got %v and %v, want large: small costs less, but was not accepted", created, err)
	}
}

// reserve makes the capacity of the large type reserved.
func reserve(count int32) func(*v1alpha1.KarpenterMachineTemplate, *v1alpha1.InstanceTypeCatalog) {
	return func(t *v1alpha1.KarpenterMachineTemplate, listed *v1alpha1.InstanceTypeCatalog) {
		listed.Spec.InstanceTypes[1].Offerings[0].CapacityType = "reserved"
		listed.Spec.InstanceTypes[1].Offerings[0].Reservation = &v1alpha1.Reservation{ID: "cr-1", Count: count}
	}
}

// A machine counts for the only reservation of its type only if its capacity type is reserved.
func TestOnlyAReservedClaimHasTheReservation(t *testing.T) {
	provider, _ := newProviderOf(func(t *v1alpha1.KarpenterMachineTemplate, listed *v1alpha1.InstanceTypeCatalog) {
		onDemand := &listed.Spec.InstanceTypes[0].Offerings[0]
		reserved := onDemand.DeepCopy()
		reserved.CapacityType, reserved.Reservation = "reserved", &v1alpha1.Reservation{ID: "cr-1", Count: 1}
		listed.Spec.InstanceTypes[0].Offerings = append(listed.Spec.InstanceTypes[0].Offerings, *reserved)
	})
	for capacity, want := range map[string]string{"on-demand": "", "reserved": "cr-1"} {
		c := waiting()
		c.Spec.Requirements = append(c.Spec.Requirements, karpv1.NodeSelectorRequirementWithMinValues{
			Key: capacityType, Operator: corev1.NodeSelectorOpIn, Values: []string{capacity},
		})
		created, err := provider.Create(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if got, has := created.Labels[v1alpha1.ReservationIDLabel]; got != want || has != (want != "") {
			t.Errorf("%s: got reservation %q in %v, want %q", capacity, got, created.Labels, want)
		}
	}
}

func inReservation(c *karpv1.NodeClaim) *karpv1.NodeClaim {
	c.Labels[capacityType], c.Labels[v1alpha1.ReservationIDLabel] = karpv1.CapacityTypeReserved, "cr-1"
	return c
}

// A label that only another template knows has the value that the NodePool sets.
func TestCreateWithALabelOfAnotherTemplate(t *testing.T) {
	provider, _ := newProviderOf(func(t *v1alpha1.KarpenterMachineTemplate, listed *v1alpha1.InstanceTypeCatalog) {
		other := listed.DeepCopy()
		other.Spec.InstanceTypes[0].Labels = map[string]v1alpha1.LabelValue{"example.com/shelf": "1"}
		types, _ := catalog.TypesOf(t, nil, other)
		catalog.Build(t, types)
	})
	c := claim("1", "1Gi", "example.com/shelf=2")
	c.Spec.NodeClassRef = nodeClassRef
	if _, err := provider.Create(t.Context(), c); err != nil {
		t.Error(err)
	}
	pool := &karpv1.NodePool{}
	pool.Spec.Template.Spec.NodeClassRef = nodeClassRef
	for labels, want := range map[string]bool{"": true, "example.com/shelf": false} {
		pool.Spec.Template.Labels = map[string]string{labels: "2"}
		instanceTypes, err := provider.GetInstanceTypes(t.Context(), pool)
		if err != nil || instanceTypes[0].Requirements.Has("example.com/shelf") != want {
			t.Errorf("with label %q: got %v and %v", labels, instanceTypes[0].Requirements, err)
		}
	}
}

func TestCreateFollowsNodeOverlays(t *testing.T) {
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "pool"}}
	pool.Spec.Template.Spec.NodeClassRef = nodeClassRef
	overlay := func(change func(*karpv1alpha1.NodeOverlaySpec)) *karpv1alpha1.NodeOverlay {
		o := &karpv1alpha1.NodeOverlay{ObjectMeta: metav1.ObjectMeta{Name: "dear"}}
		o.Spec.Requirements = []karpv1alpha1.NodeSelectorRequirement{{Key: typeLabel, Operator: corev1.NodeSelectorOpIn, Values: []string{"small"}}}
		change(&o.Spec)
		return o
	}
	for name, tc := range map[string]struct {
		overlay *karpv1alpha1.NodeOverlay
		request map[corev1.ResourceName]string
		want    string
	}{
		"a price": {overlay: overlay(func(s *karpv1alpha1.NodeOverlaySpec) { s.Price = new("5") }), want: "large"},
		"a capacity": {overlay: overlay(func(s *karpv1alpha1.NodeOverlaySpec) {
			s.Capacity = corev1.ResourceList{"example.com/dongle": resource.MustParse("1")}
		}), request: map[corev1.ResourceName]string{"example.com/dongle": "1"}, want: "small"},
	} {
		t.Run(name, func(t *testing.T) {
			provider, c := newProviderOf(nil, pool.DeepCopy(), tc.overlay)
			store := nodeoverlay.NewInstanceTypeStore()
			provider.WithOverlays(store)
			claim := waiting()
			for resourceName, quantity := range tc.request {
				claim.Spec.Resources.Requests[resourceName] = resource.MustParse(quantity)
			}
			if _, err := provider.Create(t.Context(), claim); err == nil || cloudprovider.IsInsufficientCapacityError(err) {
				t.Errorf("got %v before the overlays were evaluated: the claim must wait", err)
			}
			reconciler := nodeoverlay.NewController(clock.RealClock{}, c, provider, store, state.NewCluster(clock.RealClock{}, c, provider))
			if _, err := reconciler.Reconcile(t.Context(), ctrl.Request{}); err != nil {
				t.Fatal(err)
			}
			created, err := provider.Create(t.Context(), claim)
			if err != nil {
				t.Fatal(err)
			}
			if got := created.Labels[typeLabel]; got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if price := created.Annotations[v1alpha1.PriceAnnotation]; price != map[string]string{"small": "0.2", "large": "0.8"}[tc.want] {
				t.Errorf("got price %s, want that of the template, which is overlaid again where it is listed", price)
			}
		})
	}
}

// A claim that a user has created has no NodePool, so no NodeOverlay is for it.
func TestCreateWithoutANodePool(t *testing.T) {
	provider, _ := newProviderOf(nil)
	provider.WithOverlays(nodeoverlay.NewInstanceTypeStore())
	claim := waiting()
	claim.Labels = nil
	if _, err := provider.Create(t.Context(), claim); err != nil {
		t.Error(err)
	}
}

// A claim with the offering of an existing MachineDeployment is launched with that one, and nothing is generated.
func TestCreateAdoptsAMachineDeployment(t *testing.T) {
	existing := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "existing", Annotations: map[string]string{
		v1alpha1.AdoptableAnnotation: "true", "capacity.cluster-autoscaler.kubernetes.io/cpu": "2", "capacity.cluster-autoscaler.kubernetes.io/memory": "16Gi",
	}}}
	existing.Spec.ClusterName, existing.Spec.Template.Spec.ClusterName = "served", "served"
	existing.Spec.Template.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "AWSMachineTemplate", Name: "workers"}
	provider, _ := newProviderOf(func(t *v1alpha1.KarpenterMachineTemplate, listed *v1alpha1.InstanceTypeCatalog) {
		t.Spec.Discovery = &v1alpha1.Discovery{MachineDeployments: &v1alpha1.MachineDeploymentDiscovery{}}
	}, existing)
	claim := waiting()
	claim.Spec.Requirements = append(claim.Spec.Requirements, karpv1.NodeSelectorRequirementWithMinValues{Key: typeLabel, Operator: corev1.NodeSelectorOpIn, Values: []string{"existing"}})
	created, err := provider.Create(t.Context(), claim)
	if err != nil {
		t.Fatal(err)
	}
	if got, hash := created.Annotations[v1alpha1.ScalableResourceAnnotation], created.Annotations[v1alpha1.TemplateHashAnnotation]; got != "existing" || hash != "" {
		t.Errorf("got %q with template hash %q", got, hash)
	}
}
