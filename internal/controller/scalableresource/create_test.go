// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/generate"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// If the template changes before its scalable resource is created, the claim gets all annotations
// that the changed template gives.
func TestClaimFollowsItsTemplate(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	template := &v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "general", UID: "general", Generation: 1}}
	template.Spec.Template.Spec.InfrastructureRef = &clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "TestMachineTemplate", Name: "workers"}
	listed := fixture.Listing(template, v1alpha1.InstanceType{
		Name:      "small",
		Capacity:  corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi")},
		Offerings: []v1alpha1.Offering{{Zones: []v1alpha1.Zone{"a"}, CapacityType: karpv1.CapacityTypeOnDemand, Price: "0.2"}},
	})
	claim := &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: "c", UID: "c",
			Labels: map[string]string{corev1.LabelInstanceTypeStable: "small", corev1.LabelTopologyZone: "a", karpv1.CapacityTypeLabelKey: karpv1.CapacityTypeOnDemand},
			Annotations: map[string]string{
				"user": "own", v1alpha1.ScalableResourceAnnotation: "old", v1alpha1.TemplateHashAnnotation: "old",
				v1alpha1.TemplateRevisionAnnotation: "old", v1alpha1.PriceAnnotation: "0.1",
			},
		},
		Spec: karpv1.NodeClaimSpec{NodeClassRef: &karpv1.NodeClassReference{Group: v1alpha1.Group, Kind: v1alpha1.Kind, Name: "general"}},
	}
	claim.StatusConditions().SetTrue(karpv1.ConditionTypeLaunched)
	c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(claim, template, listed,
		object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "testmachinetemplates.infrastructure.cluster.x-k8s.io", map[string]string{clusterv1.GroupVersion.String(): "v1"}),
		object("infrastructure.cluster.x-k8s.io/v1", "TestMachineTemplate", "fleet", "workers", nil)).
		WithIndex(&karpv1.NodeClaim{}, clients.NodeClaimTemplateField, func(o client.Object) []string { return []string{o.(*karpv1.NodeClaim).Spec.NodeClassRef.Name} }).
		Build()
	both := fixture.Cluster{Client: c}
	clusters := &clients.Clusters{Cluster: types.NamespacedName{Namespace: "fleet", Name: "served"}, Workload: both, Management: both}
	r := &Reconciler{clusters: clusters, catalog: catalog.New(clusters)}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
		t.Fatal(err)
	}
	snap := &decided{Snapshot: &snapshot.Snapshot{Name: "old", Claims: []karpv1.NodeClaim{*claim}, State: planner.State{Now: now}}}
	snap.Plan = planner.Decide(&planner.State{Claims: []planner.Claim{{UID: "c", Name: "c", NeedsMachine: true}}})
	if _, err := r.ensureResource(t.Context(), snap); err != nil {
		t.Fatal(err)
	}

	launch, err := generate.LaunchOfClaim(t.Context(), clusters, r.catalog, claim)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"user": "own", v1alpha1.ScalableResourceAnnotation: launch.Resource, v1alpha1.PriceAnnotation: "0.2",
		v1alpha1.TemplateHashAnnotation:     launch.Generated.Resource.GetLabels()[v1alpha1.TemplateHashLabel],
		v1alpha1.MachineHashesAnnotation:    launch.Generated.Hashes.String(),
		v1alpha1.TemplateRevisionAnnotation: catalog.RevisionOf(template),
	}
	if diff := cmp.Diff(want, claim.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}

func object(apiVersion, kind, namespace, name string, labels map[string]string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{}}}}}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetLabels(labels)
	return o
}

// A claim whose offering its template no longer has is deleted if it waits and Karpenter creates another, but no
// other claim that has its name by now.
func TestGiveUpDeletesTheClaimThatWasRead(t *testing.T) {
	for name, tc := range map[string]struct {
		uid    types.UID // of the claim in the API server
		served bool      // it has a Machine, whose resource was deleted
		alone  bool      // it has no NodePool, and nothing replaces it
		gone   bool
	}{
		"the same claim":            {uid: "c", gone: true},
		"another one with its name": {uid: "again"},
		"one that has its Machine":  {uid: "c", served: true},
		"one without a NodePool":    {uid: "c", alone: true, gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			stored := launchedClaim("removed")
			if tc.alone {
				delete(stored.Labels, karpv1.NodePoolLabelKey)
			}
			read := *stored.DeepCopy()
			stored.UID = tc.uid
			clusters := clustersWith(fixture.Served, nil, &[]string{}, stored)
			workload := fixture.WithUIDs(clusters.Workload.GetClient().(client.WithWatch))
			clusters.Workload = fixture.Cluster{Client: workload}
			if err := workload.Get(t.Context(), client.ObjectKeyFromObject(stored), stored); err != nil {
				t.Fatal(err)
			}
			read.ResourceVersion = stored.ResourceVersion
			snap := &decided{Snapshot: &snapshot.Snapshot{Name: "general-removed", Claims: []karpv1.NodeClaim{read}, State: planner.State{Now: fixture.Noon}}}
			if !tc.served {
				snap.Plan.Waiting = sets.New[types.UID]("c")
			}
			told := &published{}
			r := newReconciler(clusters, catalog.New(clusters), told, clocktesting.NewFakeClock(fixture.Noon))
			if _, err := r.ensureResource(t.Context(), snap); err != nil {
				t.Fatal(err)
			}
			err := workload.Get(t.Context(), client.ObjectKeyFromObject(stored), stored)
			if client.IgnoreNotFound(err) != nil || (err != nil) != tc.gone {
				t.Errorf("got %v, want that the claim no longer exists: %t", err, tc.gone)
			}
			if tc.gone && (len(*told) != 1 || (*told)[0].Reason != "OfferingRemoved") {
				t.Errorf("got events %+v, want one of the deletion", *told)
			}
		})
	}
}

// A claim stays if the operator could not find out what its template offers.
func TestUnknownOfferingsEndNoClaim(t *testing.T) {
	claim := launchedClaim("small")
	clusters := clustersWith(fixture.Served, nil, &[]string{}, claim)
	r := newReconciler(clusters, catalog.New(clusters), &published{}, clocktesting.NewFakeClock(fixture.Noon))
	if err := r.giveUp(t.Context(), claim, errors.New("no answer")); err == nil {
		t.Error("got no error")
	}
	if err := clusters.Workload.GetClient().Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil || nodeclaims.IsRejected(claim) {
		t.Errorf("got %v, want that the claim stays as it is", err)
	}
}

// The claims of an adopted MachineDeployment that does not exist get the one that their offering has now.
func TestClaimsOfAMissingMachineDeployment(t *testing.T) {
	for name, tc := range map[string]struct {
		names string // what the claim names
		fails bool
	}{
		"another one has its offering":       {names: "missing"},
		"only that one, which the cache has": {names: "existing", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := existing()
			claim := launchedClaim("existing")
			claim.Annotations[v1alpha1.ScalableResourceAnnotation] = tc.names
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name}}
			clusters := clustersWith(fixture.Served, cluster, &[]string{}, cluster, deployment, claim)
			workload := clusters.Workload.GetClient()
			if err := workload.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
				t.Fatal(err)
			}
			r := newReconciler(clusters, catalog.New(clusters), &published{}, clocktesting.NewFakeClock(fixture.Noon))
			snap := decide(&snapshot.Snapshot{Name: tc.names, Claims: []karpv1.NodeClaim{*claim}, State: planner.State{Now: fixture.Noon}})
			if _, err := r.ensureResource(t.Context(), snap); (err != nil) != tc.fails {
				t.Errorf("got %v, want an error: %t", err, tc.fails)
			}
			err := workload.Get(t.Context(), client.ObjectKeyFromObject(claim), claim)
			if got := claim.Annotations[v1alpha1.ScalableResourceAnnotation]; err != nil || got != "existing" {
				t.Errorf("the claim names %q (%v), want existing", got, err)
			}
		})
	}
}

// Each event is a warning: something waits, or was deleted.
func TestEventsAreWarnings(t *testing.T) {
	claim, resource := launchedClaim("small"), scalable.New(fixture.MachinePool(nil))
	for name, event := range map[string]events.Event{
		"the offering was removed":      offeringRemoved(claim, errors.New("x")),
		"its resource was not created":  notGenerated(claim, resource, errors.New("x")),
		"a Machine is surplus":          surplusMachine(resource, fixture.Machine(time.Minute)),
		"a MachinePool does not shrink": poolNotSettled(resource, "x", time.Minute),
	} {
		if event.Type != corev1.EventTypeWarning {
			t.Errorf("%s: got type %q", name, event.Type)
		}
	}
}
