// SPDX-License-Identifier: Apache-2.0

package machinehash

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/generate"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// newTemplate returns a template that is Ready, with version v1.36.3 and the offering of newCatalog.
func newTemplate() *v1alpha1.KarpenterMachineTemplate {
	template := &v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "general", UID: "general", Generation: 1}}
	template.Spec.Template.Spec.Version = "v1.36.3"
	template.Spec.Template.Spec.InfrastructureRef = &clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "TestMachineTemplate", Name: "workers"}
	template.Spec.CatalogRefs = []v1alpha1.CatalogReference{{Name: newCatalog().Name}}
	for _, condition := range []string{
		v1alpha1.ConditionClusterReady, v1alpha1.ConditionInfrastructureReady, v1alpha1.ConditionBootstrapReady, v1alpha1.ConditionVersionReady, v1alpha1.ConditionInstanceTypesReady,
	} {
		template.StatusConditions().SetTrue(condition)
	}
	template.Status.AcceptedHash = "accepted"
	return template
}

// newCatalog returns the catalog of newTemplate, with one offering.
func newCatalog() *v1alpha1.InstanceTypeCatalog {
	return fixture.CatalogOf(v1alpha1.InstanceType{
		Name:      "small",
		Capacity:  corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi")},
		Offerings: []v1alpha1.Offering{{Zones: []v1alpha1.Zone{"a"}, CapacityType: karpv1.CapacityTypeOnDemand, Price: "0.1"}},
	})
}

// newClaim returns a registered claim of the template's offering, without hashes. Its MachineDeployment
// has version v1.36.2.
func newClaim() *karpv1.NodeClaim {
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: "claim", UID: "claim",
		Labels:      map[string]string{corev1.LabelInstanceTypeStable: "small", corev1.LabelTopologyZone: "a", karpv1.CapacityTypeLabelKey: karpv1.CapacityTypeOnDemand},
		Annotations: map[string]string{v1alpha1.ScalableResourceAnnotation: "old"},
	}}
	claim.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: v1alpha1.Group, Kind: v1alpha1.Kind, Name: "general"}
	claim.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered)
	return claim
}

func unstructuredObject(apiVersion, kind, namespace, name string, labels map[string]string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{}}}}}
	object.SetAPIVersion(apiVersion)
	object.SetKind(kind)
	object.SetNamespace(namespace)
	object.SetName(name)
	object.SetLabels(labels)
	return object
}

// adoptable returns a MachineDeployment that a template can discover.
func adoptable() *clusterv1.MachineDeployment {
	adoptable := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: "adopted", Annotations: map[string]string{
		v1alpha1.AdoptableAnnotation: "true", "capacity.cluster-autoscaler.kubernetes.io/cpu": "2", "capacity.cluster-autoscaler.kubernetes.io/memory": "16Gi",
	}}}
	adoptable.Spec.ClusterName, adoptable.Spec.Template.Spec.ClusterName = fixture.Served.Name, fixture.Served.Name
	adoptable.Spec.Template.Spec.InfrastructureRef = *newTemplate().Spec.Template.Spec.InfrastructureRef
	return adoptable
}

// outdated returns hashes of a version that are not the present ones, for a Kubernetes version.
func outdated(version, of string) string {
	return generate.Hashes{Version: of, Kubelet: version + "-a", Infrastructure: "v1beta2/" + version + "-a", Bootstrap: version + "-a"}.String()
}

func TestReconcile(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{}, "claim", errors.New("changed"))
	for name, tc := range map[string]struct {
		change func(*v1alpha1.KarpenterMachineTemplate, *karpv1.NodeClaim)
		fails  error
		// version is the one in the new hashes; empty if the hashes stay.
		version string
		// revision is the one afterwards.
		revision string
		again    time.Duration
	}{
		"no hashes": {version: "v1.36.2"},
		"hashes of another release": {change: func(_ *v1alpha1.KarpenterMachineTemplate, claim *karpv1.NodeClaim) {
			claim.Annotations[v1alpha1.MachineHashesAnnotation] = outdated("v0", "v1.35.0")
		}, version: "v1.35.0"},
		"outdated hashes of this release": {change: func(_ *v1alpha1.KarpenterMachineTemplate, claim *karpv1.NodeClaim) {
			claim.Annotations[v1alpha1.MachineHashesAnnotation] = outdated("v1", "v1.35.0")
		}},
		"a revision of another release": {change: func(_ *v1alpha1.KarpenterMachineTemplate, claim *karpv1.NodeClaim) {
			claim.Annotations[v1alpha1.MachineHashesAnnotation] = outdated("v0", "v1.36.3")
			claim.Annotations[v1alpha1.TemplateRevisionAnnotation] = "v0-a"
		}, version: "v1.36.3", revision: catalog.RevisionOf(newTemplate())},
		"a revision of another release, and outdated hashes": {change: func(_ *v1alpha1.KarpenterMachineTemplate, claim *karpv1.NodeClaim) {
			claim.Annotations[v1alpha1.MachineHashesAnnotation] = outdated("v0", "v1.35.0")
			claim.Annotations[v1alpha1.TemplateRevisionAnnotation] = "v0-a"
		}, version: "v1.35.0"},
		"another revision of this release": {change: func(_ *v1alpha1.KarpenterMachineTemplate, claim *karpv1.NodeClaim) {
			claim.Annotations[v1alpha1.TemplateRevisionAnnotation] = "v1-a"
		}, version: "v1.36.2", revision: "v1-a"},
		"a revision of another release, of an adopted resource": {change: func(template *v1alpha1.KarpenterMachineTemplate, claim *karpv1.NodeClaim) {
			template.Spec.Discovery = &v1alpha1.Discovery{MachineDeployments: &v1alpha1.MachineDeploymentDiscovery{}}
			claim.Labels = map[string]string{corev1.LabelInstanceTypeStable: "adopted", karpv1.CapacityTypeLabelKey: karpv1.CapacityTypeOnDemand}
			claim.Annotations[v1alpha1.ScalableResourceAnnotation] = "adopted"
			claim.Annotations[v1alpha1.TemplateRevisionAnnotation] = "v0-a"
		}, revision: catalog.RevisionOf(newTemplate())},
		"a resource that does not exist": {change: func(_ *v1alpha1.KarpenterMachineTemplate, claim *karpv1.NodeClaim) {
			claim.Annotations[v1alpha1.ScalableResourceAnnotation] = "none"
		}, version: "v1.36.3"},
		"a Node that is not registered": {change: func(_ *v1alpha1.KarpenterMachineTemplate, claim *karpv1.NodeClaim) {
			claim.StatusConditions().SetUnknown(karpv1.ConditionTypeRegistered)
		}},
		"a template that is not Ready": {change: func(template *v1alpha1.KarpenterMachineTemplate, _ *karpv1.NodeClaim) {
			template.StatusConditions().SetFalse(v1alpha1.ConditionInstanceTypesReady, "x", "x")
		}},
		"a template whose MachineDeployment does not exist": {change: func(template *v1alpha1.KarpenterMachineTemplate, _ *karpv1.NodeClaim) {
			template.Spec.Template.From = &v1alpha1.MachineTemplateSource{MachineDeployment: "gone"}
			template.Status.From = &v1alpha1.ObservedMachineTemplate{MachineDeployment: "gone", Hash: "1"}
			template.StatusConditions().SetTrue(v1alpha1.ConditionFromReady)
		}},
		"an offering that was removed": {change: func(_ *v1alpha1.KarpenterMachineTemplate, claim *karpv1.NodeClaim) {
			claim.Labels[corev1.LabelTopologyZone] = "b"
		}},
		"a claim of another provider": {change: func(_ *v1alpha1.KarpenterMachineTemplate, claim *karpv1.NodeClaim) {
			claim.Spec.NodeClassRef.Kind = "EC2NodeClass"
		}},
		"a conflict": {fails: conflict, again: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			template, claim := newTemplate(), newClaim()
			if tc.change != nil {
				tc.change(template, claim)
			}
			old := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: "old", Labels: map[string]string{v1alpha1.TemplateLabel: "general"}}}
			old.Spec.Template.Spec.Version = "v1.36.2"
			writes := 0
			c := fake.NewClientBuilder().WithScheme(scheme.Scheme).
				WithObjects(template, newCatalog(), claim, old, adoptable(),
					unstructuredObject("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "testmachinetemplates.infrastructure.cluster.x-k8s.io", map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta2"}),
					unstructuredObject("infrastructure.cluster.x-k8s.io/v1beta2", "TestMachineTemplate", fixture.Served.Namespace, "workers", nil)).
				WithIndex(&karpv1.NodeClaim{}, clients.NodeClaimTemplateField, func(o client.Object) []string { return []string{o.(*karpv1.NodeClaim).Spec.NodeClassRef.Name} }).
				WithInterceptorFuncs(interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
					writes++
					if tc.fails != nil {
						return tc.fails
					}
					return c.Patch(ctx, object, patch, options...)
				}}).Build()
			both := fixture.Cluster{Client: c}
			clusters := &clients.Clusters{Cluster: fixture.Served, Workload: both, Management: both}
			r := NewReconciler(clusters, catalog.New(clusters), clock.RealClock{})
			before := claim.Annotations[v1alpha1.MachineHashesAnnotation]
			for range 2 { // the second reconcile must change nothing
				result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: claim.Name}})
				if err != nil || result.RequeueAfter != tc.again {
					t.Fatalf("got %+v and %v, want another reconcile after %s", result, err, tc.again)
				}
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
				t.Fatal(err)
			}
			hashes := generate.ParseHashes(claim.Annotations[v1alpha1.MachineHashesAnnotation])
			switch {
			case tc.version == "" && claim.Annotations[v1alpha1.MachineHashesAnnotation] != before:
				t.Errorf("got hashes %s, before %q", hashes, before)
			case tc.version != "" && (hashes.Version != tc.version || !strings.HasPrefix(hashes.Infrastructure, "v1beta2/v1-") || !strings.HasPrefix(hashes.Kubelet, "v1-") || writes != 1):
				t.Errorf("got hashes %s after %d writes, want those of %s after one", hashes, writes, tc.version)
			}
			if got := claim.Annotations[v1alpha1.TemplateRevisionAnnotation]; got != tc.revision {
				t.Errorf("got revision %q, want %q", got, tc.revision)
			}
		})
	}
}

// Of the many events of a template, only those trigger a reconcile after which hashes can be renewed that
// could not be before. No event changes the object, which the cache shares.
func TestTemplateChanged(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.KarpenterMachineTemplate)
		want   bool
	}{
		"nothing":  {func(*v1alpha1.KarpenterMachineTemplate) {}, false},
		"a number": {func(t *v1alpha1.KarpenterMachineTemplate) { t.Status.NodeClaims = 7 }, false},
		"outdated Nodes": {func(t *v1alpha1.KarpenterMachineTemplate) {
			t.StatusConditions().SetFalse(v1alpha1.ConditionNodesCurrent, "x", "x")
		}, false},
		"it is no longer Ready": {func(t *v1alpha1.KarpenterMachineTemplate) {
			t.StatusConditions().SetFalse(status.ConditionReady, "x", "x")
		}, true},
		"Cluster API is blocked": {func(t *v1alpha1.KarpenterMachineTemplate) {
			t.StatusConditions().SetFalse(v1alpha1.ConditionMachinesProgressing, "x", "x")
		}, true},
		"other content": {func(t *v1alpha1.KarpenterMachineTemplate) { t.Status.AcceptedHash = "other" }, true},
		"other version": {func(t *v1alpha1.KarpenterMachineTemplate) { t.Status.Version = "v1.36.4" }, true},
		"an upgrade ends": {func(t *v1alpha1.KarpenterMachineTemplate) {
			t.StatusConditions().SetTrueWithReason(v1alpha1.ConditionVersionReady, v1alpha1.ReasonVersionOfControlPlane, "done")
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := newTemplate(), newTemplate()
			tc.change(after)
			if got := templateChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
	bare := &v1alpha1.KarpenterMachineTemplate{}
	templateChanged().Update(event.UpdateEvent{ObjectOld: bare, ObjectNew: bare})
	if len(bare.Status.Conditions) > 0 {
		t.Error("the predicate adds conditions to the object of an event")
	}
}

func TestClaimChanged(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*karpv1.NodeClaim)
		want   bool
	}{
		"nothing":                {func(*karpv1.NodeClaim) {}, false},
		"another annotation":     {func(c *karpv1.NodeClaim) { c.Annotations["x"] = "y" }, false},
		"its hashes":             {func(c *karpv1.NodeClaim) { c.Annotations[v1alpha1.MachineHashesAnnotation] = "y" }, true},
		"its revision":           {func(c *karpv1.NodeClaim) { c.Annotations[v1alpha1.TemplateRevisionAnnotation] = "y" }, true},
		"its Node is registered": {func(c *karpv1.NodeClaim) { c.Status.Conditions = nil }, true},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := newClaim(), newClaim()
			tc.change(after)
			if got := claimChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
