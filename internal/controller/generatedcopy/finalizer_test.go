// SPDX-License-Identifier: Apache-2.0

package generatedcopy

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/enqueue"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// unwatched is a controller that watches nothing, because the tests call Reconcile.
type unwatched struct{ controller.Controller }

func (unwatched) Watch(source.Source) error { return nil }

// A template is deleted when no NodeClaim, scalable resource and copy of it is left. It does not wait for
// what Cluster API deletes with the Cluster.
func TestFinalizerIsRemoved(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	served := types.NamespacedName{Namespace: "fleet", Name: "served"}
	kind := schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1", Kind: "TestMachineTemplate"}
	labels := scalable.GeneratedLabels(served, "general")
	cluster := func() *clusterv1.Cluster {
		return &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: served.Name, Finalizers: []string{clusterv1.ClusterFinalizer}}}
	}
	paused, deleting := cluster(), cluster()
	paused.Spec.Paused = new(true)
	deleting.DeletionTimestamp = new(metav1.NewTime(now))
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	claim.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: v1alpha1.Group, Kind: v1alpha1.Kind, Name: "general"}
	another := claim.DeepCopy()
	another.Spec.NodeClassRef.Name = "another"
	resource := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: "general-1", Labels: labels}}
	adopted := resource.DeepCopy()
	adopted.Annotations = map[string]string{v1alpha1.AdoptedAnnotation: now.Format(time.RFC3339)}
	copied := &unstructured.Unstructured{}
	copied.SetGroupVersionKind(kind)
	copied.SetNamespace(served.Namespace)
	copied.SetName("copy")
	copied.SetLabels(labels)
	copied.SetCreationTimestamp(metav1.NewTime(now.Add(-time.Second)))
	unused := copied.DeepCopy()
	unused.SetCreationTimestamp(metav1.NewTime(now.Add(-24 * time.Hour)))
	owned := copied.DeepCopy()
	owned.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Owner", Name: "o", UID: "o", Controller: new(true)}})
	base := copied.DeepCopy()
	base.SetLabels(nil)
	for name, tc := range map[string]struct {
		cluster *clusterv1.Cluster // nil if it does not exist
		objects []client.Object
		alive   bool // it is not being deleted
		gone    bool
	}{
		"nothing is left":                           {cluster: cluster(), gone: true},
		"nothing is left, and it is not deleted":    {cluster: cluster(), alive: true},
		"a base template":                           {cluster: cluster(), objects: []client.Object{base}, gone: true},
		"a NodeClaim":                               {cluster: cluster(), objects: []client.Object{claim}},
		"a NodeClaim of another template":           {cluster: cluster(), objects: []client.Object{another}, gone: true},
		"a MachineDeployment":                       {cluster: cluster(), objects: []client.Object{resource}},
		"an adopted MachineDeployment":              {cluster: cluster(), objects: []client.Object{adopted}},
		"a copy":                                    {cluster: cluster(), objects: []client.Object{copied}},
		"an object that another controller owns":    {cluster: cluster(), objects: []client.Object{owned}, gone: true},
		"nothing, and the Cluster is paused":        {cluster: paused},
		"the Cluster is being deleted":              {cluster: deleting, objects: []client.Object{resource, copied}, gone: true},
		"an old copy, the Cluster is being deleted": {cluster: deleting, objects: []client.Object{unused}, gone: true},
		"a NodeClaim, the Cluster is being deleted": {cluster: deleting, objects: []client.Object{claim}},
		"the Cluster does not exist":                {objects: []client.Object{resource, copied}, gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			template := &v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "general", Finalizers: []string{v1alpha1.TerminationFinalizer}}}
			if !tc.alive {
				template.DeletionTimestamp = new(metav1.NewTime(now))
			}
			objects := []client.Object{template}
			if tc.cluster != nil {
				objects = append(objects, tc.cluster.DeepCopy())
			}
			for _, object := range tc.objects {
				objects = append(objects, object.DeepCopyObject().(client.Object))
			}
			c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).
				WithIndex(&karpv1.NodeClaim{}, clients.NodeClaimTemplateField, func(o client.Object) []string {
					return []string{o.(*karpv1.NodeClaim).Spec.NodeClassRef.Name}
				}).Build()
			both := fixture.Cluster{Client: c}
			r := NewReconciler(&clients.Clusters{Cluster: served, Management: both, Workload: both}, nil, clocktesting.NewFakeClock(now))
			r.kinds = enqueue.NewKinds(unwatched{}, nil, kind)
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "general"}}); err != nil {
				t.Fatal(err)
			}
			err := c.Get(t.Context(), client.ObjectKeyFromObject(template), template)
			if client.IgnoreNotFound(err) != nil || apierrors.IsNotFound(err) != tc.gone {
				t.Errorf("got %v, want that it no longer exists: %t", err, tc.gone)
			}
			if !tc.gone && len(template.Finalizers) == 0 {
				t.Error("it has lost its finalizer")
			}
			for _, object := range tc.objects {
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object.DeepCopyObject().(client.Object)); err != nil {
					t.Errorf("%T %s: %v", object, object.GetName(), err)
				}
			}
		})
	}
}

// A finalizer that another writer adds at the same time stays.
func TestFinalizerIsRemovedWithoutThoseOfOthers(t *testing.T) {
	template := &v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{
		Name: "general", Finalizers: []string{v1alpha1.TerminationFinalizer}, DeletionTimestamp: new(metav1.NewTime(fixture.Noon)),
	}}
	r := newReconciler(template, newObject("workers", nil))
	workload := r.clusters.Workload.GetClient().(client.WithWatch)
	r.clusters.Workload = fixture.Cluster{Client: interceptor.NewClient(workload, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			theirs := &v1alpha1.KarpenterMachineTemplate{}
			if err := c.Get(ctx, client.ObjectKeyFromObject(object), theirs); err != nil {
				return err
			}
			theirs.Finalizers = append(theirs.Finalizers, "theirs/x")
			if err := c.Update(ctx, theirs); err != nil {
				return err
			}
			return c.Patch(ctx, object, patch, options...)
		},
	})}
	result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "general"}})
	if err != nil || result.RequeueAfter == 0 {
		t.Errorf("got %v and %v, want another reconcile", result, err)
	}
	if err := workload.Get(t.Context(), client.ObjectKeyFromObject(template), template); err != nil || len(template.Finalizers) != 2 {
		t.Errorf("got finalizers %v and %v, want both", template.Finalizers, err)
	}
}
