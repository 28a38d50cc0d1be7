// SPDX-License-Identifier: Apache-2.0

package enqueue

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// The event of a template, of the MachineDeployment that it follows, or of the Cluster, concerns the resources that exist and those that only claims name.
func TestResources(t *testing.T) {
	deployment := func(name, template string) client.Object {
		object := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: name}}
		if template != "" {
			object.Labels = map[string]string{v1alpha1.TemplateLabel: template}
		}
		object.Spec.ClusterName = fixture.Served.Name
		return object
	}
	pool := &clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: "pool", Labels: map[string]string{v1alpha1.TemplateLabel: "general"}}}
	pool.Spec.ClusterName = fixture.Served.Name
	claim := func(name, template, resource string) client.Object {
		object := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{v1alpha1.ScalableResourceAnnotation: resource}}}
		object.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: v1alpha1.Group, Kind: v1alpha1.Kind, Name: template}
		return object
	}
	follower := &v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "general"}}
	follower.Spec.Template.From = &v1alpha1.MachineTemplateSource{MachineDeployment: "followed"}
	both := fixture.Cluster{Client: fake.NewClientBuilder().WithScheme(scheme.Scheme).
		WithObjects(follower, deployment("exists", "general"), deployment("of-another", "other"), deployment("of-a-user", ""), pool,
			claim("a", "general", "exists"), claim("b", "general", "only-named"), claim("c", "other", "named-by-another"), claim("d", "general", "")).
		WithIndex(&karpv1.NodeClaim{}, clients.NodeClaimTemplateField, func(o client.Object) []string {
			return []string{o.(*karpv1.NodeClaim).Spec.NodeClassRef.Name}
		}).Build()}
	clusters := &clients.Clusters{Cluster: fixture.Served, Workload: both, Management: both}
	names := func(requests []reconcile.Request) []string {
		return lo.Map(requests, func(r reconcile.Request, _ int) string { return r.Name })
	}
	if diff := cmp.Diff([]string{"exists", "named-by-another", "of-another", "only-named", "pool"}, names(all(t.Context(), clusters))); diff != "" {
		t.Errorf("of the Cluster (-want +got):\n%s", diff)
	}
	synctest.Test(t, func(t *testing.T) {
		template := &v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "general"}}
		expectNames(t, func(q queue) {
			ResourcesOfTemplate(clusters).Generic(t.Context(), event.GenericEvent{Object: template}, q)
		}, "exists", "only-named", "pool")
		expectNames(t, func(q queue) {
			ResourcesOfFollowers(clusters).Delete(t.Context(), event.DeleteEvent{Object: deployment("followed", "")}, q)
		}, "exists", "only-named", "pool")
		expectNames(t, func(q queue) {
			ResourcesOfFollowers(clusters).Delete(t.Context(), event.DeleteEvent{Object: deployment("of-a-user", "")}, q)
		})
	})
}

// expectNames expects that a queue has requests of the names, and no others, once no delay is left. It is called in
// a bubble of synctest.
func expectNames(t *testing.T, send func(queue), want ...string) {
	t.Helper()
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	send(q)
	time.Sleep(2 * maxGap)
	synctest.Wait()
	var got []string
	for range q.Len() {
		request, _ := q.Get()
		got = append(got, request.Name)
		q.Done(request)
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An object that moves to another resource is an event of both.
func TestSpacingOfObjects(t *testing.T) {
	of := func(resource string) client.Object {
		return &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.ScalableResourceAnnotation: resource}}}
	}
	for name, tc := range map[string]struct {
		send func(*Spacing, queue)
		want []string
	}{
		"it is created":         {func(s *Spacing, q queue) { s.of(ofClaim).Create(t.Context(), event.CreateEvent{Object: of("a")}, q) }, []string{"a"}},
		"it is deleted":         {func(s *Spacing, q queue) { s.of(ofClaim).Delete(t.Context(), event.DeleteEvent{Object: of("a")}, q) }, []string{"a"}},
		"something concerns it": {func(s *Spacing, q queue) { s.of(ofClaim).Generic(t.Context(), event.GenericEvent{Object: of("a")}, q) }, []string{"a"}},
		"it is moved": {func(s *Spacing, q queue) {
			s.of(ofClaim).Update(t.Context(), event.UpdateEvent{ObjectOld: of("a"), ObjectNew: of("b")}, q)
		}, []string{"a", "b"}},
		"it belongs to none": {func(s *Spacing, q queue) { s.of(ofClaim).Create(t.Context(), event.CreateEvent{Object: of("")}, q) }, nil},
		"a resource is named": {func(s *Spacing, q queue) {
			s.Enqueue("not started")
			if err := s.Source().Start(t.Context(), q); err != nil {
				t.Error(err)
			}
			s.Enqueue("a")
		}, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				expectNames(t, func(q queue) { tc.send(NewSpacing(clock.RealClock{}), q) }, tc.want...)
			})
		})
	}
}

// watches is a controller that lists the sources that it watches.
type watches struct {
	controller.Controller

	sources []string
	err     error
}

func (w *watches) Watch(added source.Source) error {
	if w.err == nil {
		w.sources = append(w.sources, fmt.Sprint(added))
	}
	return w.err
}

// A kind is watched once, however often that is asked for, and asked for again after an error.
func TestKinds(t *testing.T) {
	kind := fixture.Infrastructure().GroupVersionKind()
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(kind)
	handler := Now(NewTemplates(nil).OfClaim)
	for name, tc := range map[string]struct {
		watch   func(*Kinds) error
		listed  bool
		watched string // its type
	}{
		"objects":  {watch: func(k *Kinds) error { return k.Watch(kind, handler) }, listed: true, watched: "*unstructured.Unstructured"},
		"metadata": {watch: func(k *Kinds) error { return k.WatchMetadata(metadata, handler) }, watched: "*v1.PartialObjectMetadata"},
	} {
		t.Run(name, func(t *testing.T) {
			controller := &watches{err: errors.New("refused")}
			kinds := NewKinds(controller, nil)
			if err := tc.watch(kinds); !errors.Is(err, controller.err) {
				t.Errorf("got %v, want that it is refused", err)
			}
			controller.err = nil
			for range 2 {
				if err := tc.watch(kinds); err != nil {
					t.Fatal(err)
				}
			}
			want := []string{fmt.Sprintf("kind source: %s[%s %s]", tc.watched, kind.GroupVersion(), kind.Kind)}
			if diff := cmp.Diff(want, controller.sources); diff != "" {
				t.Errorf("watches (-want +got):\n%s", diff)
			}
			if got := slices.Contains(kinds.List(), kind); got != tc.listed {
				t.Errorf("the kind is listed: %t, want %t", got, tc.listed)
			}
		})
	}
	if got := NewKinds(nil, nil, kind).List(); !slices.Contains(got, kind) {
		t.Errorf("got %v, want the kind that is watched already", got)
	}
}

// Of what templates refer to, changes of the content, of what describes an instance type, and deletions are events.
func TestDescribed(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*unstructured.Unstructured)
		want   bool
	}{
		"nothing":       {func(*unstructured.Unstructured) {}, false},
		"its owners":    {func(o *unstructured.Unstructured) { o.SetOwnerReferences([]metav1.OwnerReference{{Name: "x"}}) }, false},
		"its spec":      {func(o *unstructured.Unstructured) { o.SetGeneration(2) }, true},
		"a label":       {func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"a": "b"}) }, true},
		"an annotation": {func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{"a": "b"}) }, true},
		"its status": {func(o *unstructured.Unstructured) {
			o.Object["status"] = map[string]any{"capacity": map[string]any{"cpu": "2"}}
		}, true},
		"that it is going": {func(o *unstructured.Unstructured) { o.SetDeletionTimestamp(new(metav1.NewTime(time.Unix(1, 0)))) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			before := fixture.Infrastructure()
			before.SetGeneration(1)
			before.SetLabels(nil)
			after := before.DeepCopy()
			tc.change(after)
			if got := described().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

// The marks of offerings are events for those that launch with them, and nothing else of a template is.
func TestUnavailableChanged(t *testing.T) {
	marked := func(types ...string) *v1alpha1.KarpenterMachineTemplate {
		template := &v1alpha1.KarpenterMachineTemplate{}
		for _, name := range types {
			template.Status.UnavailableOfferings = append(template.Status.UnavailableOfferings, v1alpha1.UnavailableOffering{InstanceType: name})
		}
		return template
	}
	other := marked("a")
	other.Generation, other.Status.NodeClaims = 2, 7
	for name, tc := range map[string]struct {
		after *v1alpha1.KarpenterMachineTemplate
		want  bool
	}{
		"nothing":                 {marked("a"), false},
		"another field":           {other, false},
		"a mark is new":           {marked("a", "b"), true},
		"a mark no longer exists": {marked(), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := UnavailableChanged().Update(event.UpdateEvent{ObjectOld: marked("a"), ObjectNew: tc.after}); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
