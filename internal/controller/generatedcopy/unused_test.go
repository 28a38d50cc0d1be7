// SPDX-License-Identifier: Apache-2.0

package generatedcopy

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/enqueue"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// A copy that nothing refers to is deleted after 5 minutes, or after 30 seconds if its template ends: the resource
// that refers to a new copy is created after the copy. A copy that has changed since it was read stays.
func TestUnusedCopies(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1", Kind: "TestMachineTemplate"}
	stays := &v1alpha1.KarpenterMachineTemplate{}
	ends := &v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: new(metav1.NewTime(fixture.Noon))}}
	for name, tc := range map[string]struct {
		template *v1alpha1.KarpenterMachineTemplate // nil if it no longer exists
		age      time.Duration
		newer    time.Duration // the age of another one; zero if there is none
		stale    bool
		gone     bool
		next     time.Duration
	}{
		"a new one":                              {template: stays, age: time.Minute, next: 4 * time.Minute},
		"a new one, and a newer one":             {template: stays, age: 2 * time.Minute, newer: time.Minute, next: 3 * time.Minute},
		"one that is 5 minutes old":              {template: stays, age: 5 * time.Minute, gone: true},
		"a new one, and its template ends":       {template: ends, age: 10 * time.Second, next: 20 * time.Second},
		"30 seconds old, and its template ends":  {template: ends, age: 30 * time.Second, gone: true},
		"a new one without a template":           {age: 10 * time.Second, next: 20 * time.Second},
		"30 seconds old, without a template":     {age: 30 * time.Second, gone: true},
		"one that has changed since it was read": {template: stays, age: time.Hour, stale: true},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			object.SetGroupVersionKind(kind)
			object.SetNamespace(fixture.Served.Namespace)
			object.SetName("copy")
			object.SetLabels(scalable.GeneratedLabels(fixture.Served, "general"))
			object.SetCreationTimestamp(metav1.NewTime(fixture.Noon.Add(-tc.age)))
			objects := []client.Object{object}
			if tc.newer > 0 {
				newer := object.DeepCopy()
				newer.SetName("copy-of-another")
				newer.SetCreationTimestamp(metav1.NewTime(fixture.Noon.Add(-tc.newer)))
				objects = append(objects, newer)
			}
			management := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).Build()
			r := NewReconciler(&clients.Clusters{Cluster: fixture.Served, Management: fixture.Cluster{Client: management}}, nil, clocktesting.NewFakeClock(fixture.Noon))
			r.kinds = enqueue.NewKinds(nil, nil, kind)
			after := object.DeepCopy()
			if tc.stale {
				if err := management.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
					t.Fatal(err)
				}
				changed := object.DeepCopy()
				changed.SetAnnotations(map[string]string{"theirs": "x"})
				if err := management.Update(t.Context(), changed); err != nil {
					t.Fatal(err)
				}
				if _, err := r.keepCopy(t.Context(), object, nil, time.Minute); !apierrors.IsConflict(err) {
					t.Errorf("got %v, want a conflict", err)
				}
			} else {
				existing, next, err := r.keepCopies(t.Context(), "general", tc.template, nil)
				if err != nil || existing != len(objects) || next != tc.next {
					t.Errorf("got %d copies, the next of them after %s, and %v; want %d, after %s", existing, next, err, len(objects), tc.next)
				}
			}
			err := management.Get(t.Context(), client.ObjectKeyFromObject(object), after)
			if client.IgnoreNotFound(err) != nil || apierrors.IsNotFound(err) != tc.gone {
				t.Errorf("got %v, want it deleted: %t", err, tc.gone)
			}
		})
	}
}
