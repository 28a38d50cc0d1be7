// SPDX-License-Identifier: Apache-2.0

package enqueue

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// Events of generated objects concern the template that they were generated for, and
// those of other Clusters none. Any template can refer to what was not generated.
func TestTemplatesOfReferencedObjects(t *testing.T) {
	served := types.NamespacedName{Namespace: "fleet", Name: "served"}
	workload := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(
		&v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "batch"}},
		&v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "general"}}).Build()
	templates := NewTemplates(&clients.Clusters{Cluster: served, Workload: fixture.Cluster{Client: workload}})
	neighbour := types.NamespacedName{Namespace: served.Namespace, Name: "neighbour"}
	for name, tc := range map[string]struct {
		labels                map[string]string
		referenced, generated []string
	}{
		"generated":                     {labels: scalable.GeneratedLabels(served, "general"), referenced: []string{"general"}, generated: []string{"general"}},
		"generated for another Cluster": {labels: scalable.GeneratedLabels(neighbour, "general")},
		"a base":                        {referenced: []string{"batch", "general"}},
		"a base with a Cluster's name":  {labels: map[string]string{clusterv1.ClusterNameLabel: neighbour.Name}, referenced: []string{"batch", "general"}},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			object.SetLabels(tc.labels)
			if diff := cmp.Diff(tc.referenced, templates.OfReferenced(t.Context(), object), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("of a kind that templates refer to (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.generated, templates.OfGenerated(t.Context(), object), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("of a kind that is generated (-want +got):\n%s", diff)
			}
		})
	}
}

// Events of a MachineDeployment concern the templates that follow it.
func TestTemplatesOfPattern(t *testing.T) {
	follower := func(name string, from *v1alpha1.MachineTemplateSource) *v1alpha1.KarpenterMachineTemplate {
		template := &v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: name}}
		template.Spec.Template.From = from
		return template
	}
	workload := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(
		follower("by-name", &v1alpha1.MachineTemplateSource{MachineDeployment: "served-md-0-x7k2p"}),
		follower("by-entry", &v1alpha1.MachineTemplateSource{MachineDeploymentTopology: "md-0"}),
		follower("other", &v1alpha1.MachineTemplateSource{MachineDeployment: "md-0"}),
		follower("none", nil)).Build()
	templates := NewTemplates(&clients.Clusters{Workload: fixture.Cluster{Client: workload}})
	deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "served-md-0-x7k2p", Labels: map[string]string{
		clusterv1.ClusterTopologyOwnedLabel: "", clusterv1.ClusterTopologyMachineDeploymentNameLabel: "md-0",
	}}}
	if diff := cmp.Diff([]string{"by-entry", "by-name"}, templates.OfPattern(t.Context(), deployment)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := templates.OfPattern(t.Context(), &clusterv1.MachinePool{ObjectMeta: deployment.ObjectMeta}); len(got) > 0 {
		t.Errorf("got %v for a MachinePool, want none", got)
	}
}

// Events of scalable resources, catalogs and claims concern the templates that depend on them.
func TestTemplatesOfOthers(t *testing.T) {
	template := func(name string, change func(*v1alpha1.KarpenterMachineTemplateSpec)) *v1alpha1.KarpenterMachineTemplate {
		template := &v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: name}}
		change(&template.Spec)
		return template
	}
	infrastructure := func(kind string) *v1alpha1.Discovery {
		return &v1alpha1.Discovery{InfrastructureTemplates: &v1alpha1.InfrastructureTemplateDiscovery{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: kind}}
	}
	workload := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(
		template("discovers", func(s *v1alpha1.KarpenterMachineTemplateSpec) {
			s.Discovery = &v1alpha1.Discovery{MachineDeployments: &v1alpha1.MachineDeploymentDiscovery{}}
		}),
		template("discovers-other", func(s *v1alpha1.KarpenterMachineTemplateSpec) { s.Discovery = &v1alpha1.Discovery{} }),
		template("refers", func(s *v1alpha1.KarpenterMachineTemplateSpec) {
			s.CatalogRefs = []v1alpha1.CatalogReference{{Name: "aws"}}
		}),
		template("refers-too", func(s *v1alpha1.KarpenterMachineTemplateSpec) {
			s.CatalogRefs = []v1alpha1.CatalogReference{{Name: "gcp"}, {Name: "aws"}}
		}),
		template("metal", func(s *v1alpha1.KarpenterMachineTemplateSpec) { s.Discovery = infrastructure("Metal3MachineTemplate") }),
		template("metal-too", func(s *v1alpha1.KarpenterMachineTemplateSpec) { s.Discovery = infrastructure("Metal3MachineTemplate") }),
		template("vsphere", func(s *v1alpha1.KarpenterMachineTemplateSpec) { s.Discovery = infrastructure("VSphereMachineTemplate") }),
		template("plain", func(*v1alpha1.KarpenterMachineTemplateSpec) {})).Build()
	templates := NewTemplates(&clients.Clusters{Workload: fixture.Cluster{Client: workload}})
	deployment := func(name string, annotations map[string]string) client.Object {
		object := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "md", Annotations: annotations}}
		if name != "" {
			object.Labels = map[string]string{v1alpha1.TemplateLabel: name}
		}
		return object
	}
	launched := func(template, reservation string) client.Object {
		claim := &karpv1.NodeClaim{Spec: karpv1.NodeClaimSpec{NodeClassRef: &karpv1.NodeClassReference{Group: v1alpha1.Group, Kind: v1alpha1.Kind, Name: template}}}
		claim.Labels = lo.OmitByValues(map[string]string{v1alpha1.ReservationIDLabel: reservation}, []string{""})
		return claim
	}
	claim := func(group string) client.Object {
		return &karpv1.NodeClaim{Spec: karpv1.NodeClaimSpec{NodeClassRef: &karpv1.NodeClassReference{Group: group, Kind: v1alpha1.Kind, Name: "plain"}}}
	}
	pool := func(group string) client.Object {
		object := &karpv1.NodePool{}
		object.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: group, Kind: v1alpha1.Kind, Name: "plain"}
		return object
	}
	for name, tc := range map[string]struct {
		of     func(context.Context, client.Object) []string
		object client.Object
		want   []string
	}{
		"a generated resource":              {of: templates.OfResource, object: deployment("plain", nil), want: []string{"plain"}},
		"of a template that does not exist": {of: templates.OfResource, object: deployment("gone", nil), want: []string{"gone"}},
		"an adopted resource":               {of: templates.OfResource, object: deployment("plain", map[string]string{v1alpha1.AdoptedAnnotation: "true"}), want: []string{"discovers", "plain"}},
		"a resource that was not generated": {of: templates.OfResource, object: deployment("", nil), want: []string{"discovers"}},
		"a catalog":                         {of: templates.OfCatalog, object: &v1alpha1.InstanceTypeCatalog{ObjectMeta: metav1.ObjectMeta{Name: "aws"}}, want: []string{"refers", "refers-too"}},
		"a catalog that nothing refers to":  {of: templates.OfCatalog, object: &v1alpha1.InstanceTypeCatalog{ObjectMeta: metav1.ObjectMeta{Name: "azure"}}},
		"limits of a catalog":               {of: templates.SharingLimits, object: launched("refers", ""), want: []string{"refers-too"}},
		"limits of what is discovered":      {of: templates.SharingLimits, object: launched("metal", ""), want: []string{"metal-too"}},
		"limits of no other template":       {of: templates.SharingLimits, object: launched("plain", "")},
		"a reservation":                     {of: templates.SharingLimits, object: launched("plain", "cr-1"), want: []string{"discovers", "discovers-other", "metal", "metal-too", "refers", "refers-too", "vsphere"}},
		"a reservation, of one that ended":  {of: templates.SharingLimits, object: launched("gone", "cr-1"), want: []string{"discovers", "discovers-other", "metal", "metal-too", "plain", "refers", "refers-too", "vsphere"}},
		"limits of a template that ended":   {of: templates.SharingLimits, object: launched("gone", "")},
		"limits, of an object of its own":   {of: templates.SharingLimits, object: deployment("plain", nil)},
		"a claim":                           {of: templates.OfClaim, object: claim(v1alpha1.Group), want: []string{"plain"}},
		"a claim of another provider":       {of: templates.OfClaim, object: claim("karpenter.k8s.aws")},
		"a claim without a class":           {of: templates.OfClaim, object: &karpv1.NodeClaim{}},
		"a NodePool":                        {of: templates.OfPool, object: pool(v1alpha1.Group), want: []string{"plain"}},
		"a NodePool of another provider":    {of: templates.OfPool, object: pool("karpenter.k8s.aws")},
		"an object that is not a NodePool":  {of: templates.OfPool, object: claim(v1alpha1.Group)},
		"an object that is not a claim":     {of: templates.OfClaim, object: deployment("plain", nil)},
		"an object that is no pattern":      {of: templates.OfPattern, object: claim(v1alpha1.Group)},
		"anything, for all templates":       {of: templates.All, want: []string{"discovers", "discovers-other", "metal", "metal-too", "plain", "refers", "refers-too", "vsphere"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.of(t.Context(), tc.object), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Frequent events are collected, and an update that takes a label away also concerns the template that had it.
func TestLater(t *testing.T) {
	labelled := func(name string) client.Object {
		return &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "md", Labels: map[string]string{v1alpha1.TemplateLabel: name}}}
	}
	spacing := NewSpacing(clock.RealClock{})
	events := spacing.Later(func(_ context.Context, object client.Object) []string {
		return []string{object.GetLabels()[v1alpha1.TemplateLabel]}
	})
	for name, tc := range map[string]struct {
		send  func(context.Context, queue)
		after time.Duration // default: one second
		want  []string
	}{
		"a creation": {send: func(ctx context.Context, q queue) { events.Create(ctx, event.CreateEvent{Object: labelled("a")}, q) }, want: []string{"a"}},
		"an update of the status": {send: func(ctx context.Context, q queue) {
			events.Update(ctx, event.UpdateEvent{ObjectOld: labelled("a"), ObjectNew: labelled("a")}, q)
		}, after: 3 * time.Second, want: []string{"a"}},
		"an update of the spec": {send: func(ctx context.Context, q queue) {
			changed := labelled("a")
			changed.SetGeneration(2)
			events.Update(ctx, event.UpdateEvent{ObjectOld: labelled("a"), ObjectNew: changed}, q)
		}, want: []string{"a"}},
		"an update of the status, and a deletion": {send: func(ctx context.Context, q queue) {
			events.Update(ctx, event.UpdateEvent{ObjectOld: labelled("a"), ObjectNew: labelled("a")}, q)
			events.Delete(ctx, event.DeleteEvent{Object: labelled("a")}, q)
		}, want: []string{"a"}},
		"an update of a label": {send: func(ctx context.Context, q queue) {
			events.Update(ctx, event.UpdateEvent{ObjectOld: labelled("a"), ObjectNew: labelled("b")}, q)
		}, want: []string{"a", "b"}},
		"a deletion": {send: func(ctx context.Context, q queue) { events.Delete(ctx, event.DeleteEvent{Object: labelled("a")}, q) }, want: []string{"a"}},
		"two within the window": {send: func(ctx context.Context, q queue) {
			events.Create(ctx, event.CreateEvent{Object: labelled("a")}, q)
			time.Sleep(time.Second / 2)
			events.Delete(ctx, event.DeleteEvent{Object: labelled("a")}, q)
		}, want: []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
				defer q.ShutDown()
				began := time.Now()
				tc.send(t.Context(), q)
				end := began.Add(max(tc.after, time.Second))
				time.Sleep(time.Until(end.Add(-time.Millisecond)))
				synctest.Wait()
				if q.Len() > 0 {
					t.Error("enqueued before the end of the window")
				}
				time.Sleep(time.Until(end.Add(time.Millisecond)))
				synctest.Wait()
				var got []string
				for range q.Len() {
					request, _ := q.Get()
					got = append(got, request.Name)
					q.Done(request)
				}
				slices.Sort(got)
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// Events of a template with many claims are collected for longer, but not for any time.
func TestLaterWithManyClaims(t *testing.T) {
	for name, tc := range map[string]struct {
		claims          int
		changed, status time.Duration
	}{
		"1,000 claims":  {claims: 1000, changed: time.Second, status: 3 * time.Second},
		"4,000 claims":  {claims: 4000, changed: 4 * time.Second, status: 4 * time.Second},
		"50,000 claims": {claims: 50_000, changed: 5 * time.Second, status: 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			spacing := NewSpacing(clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
			spacing.Begin("a")
			spacing.SetSize("a", tc.claims)
			if changed, status := spacing.delay("a", ofTemplateChange), spacing.delay("a", ofTemplateStatus); changed != tc.changed || status != tc.status {
				t.Errorf("got %s, and %s for the status; want %s and %s", changed, status, tc.changed, tc.status)
			}
		})
	}
}
