// SPDX-License-Identifier: Apache-2.0

package generatedcopy

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
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
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/enqueue"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// An object that nothing refers to is deleted, but never one that was created for a Machine, which
// has the labels of its Machine and so that of the template.
func TestKeepCopies(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "bootstrap.test", Version: "v1", Kind: "TestConfig"}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		labels map[string]string
		owner  bool
		age    time.Duration
		gone   bool
	}{
		"unused":                        {age: time.Hour, gone: true},
		"unused, and one minute old":    {age: time.Minute},
		"with another controller":       {age: time.Hour, owner: true},
		"of a Machine of a MachineSet":  {age: time.Hour, labels: map[string]string{clusterv1.MachineSetNameLabel: "x"}},
		"of one of a MachineDeployment": {age: time.Hour, labels: map[string]string{clusterv1.MachineDeploymentNameLabel: "x"}},
		"of one of a MachinePool":       {age: time.Hour, labels: map[string]string{clusterv1.MachinePoolNameLabel: "x"}},
		"another Cluster's":             {age: time.Hour, labels: map[string]string{clusterv1.ClusterNameLabel: "neighbour"}},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			object.SetGroupVersionKind(kind)
			object.SetNamespace("fleet")
			object.SetName("config")
			served := types.NamespacedName{Namespace: "fleet", Name: "served"}
			object.SetLabels(lo.Assign(scalable.GeneratedLabels(served, "general"), tc.labels))
			object.SetCreationTimestamp(metav1.NewTime(now.Add(-tc.age)))
			if tc.owner {
				object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Owner", Name: "o", UID: "o", Controller: new(true)}})
			}
			management := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(object,
				&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: served.Name}}).Build()
			r := NewReconciler(&clients.Clusters{Cluster: served, Management: fixture.Cluster{Client: management}}, nil, clocktesting.NewFakeClock(now))
			r.kinds = enqueue.NewKinds(nil, nil, kind)
			keepCopies(t, r, &v1alpha1.KarpenterMachineTemplate{})
			after := &unstructured.Unstructured{}
			after.SetGroupVersionKind(kind)
			err := management.Get(t.Context(), client.ObjectKeyFromObject(object), after)
			if client.IgnoreNotFound(err) != nil || apierrors.IsNotFound(err) != tc.gone {
				t.Errorf("got %v, want it deleted: %t", err, tc.gone)
			}
		})
	}
}

// keepCopies maintains the copies of the template, which is nil if it no longer exists.
func keepCopies(t *testing.T, r *Reconciler, template *v1alpha1.KarpenterMachineTemplate) {
	t.Helper()
	resources, err := scalable.List(t.Context(), r.clusters, client.MatchingLabels{v1alpha1.TemplateLabel: "general"})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.keepCopies(t.Context(), "general", template, resources); err != nil {
		t.Fatal(err)
	}
}

// A kind that cannot be listed concerns only the templates that use it. Others can be deleted.
func TestKeepCopiesOfAKindThatCannotBeListed(t *testing.T) {
	served := types.NamespacedName{Namespace: "fleet", Name: "served"}
	kind := schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1", Kind: "TestMachineTemplate"}
	uses := &v1alpha1.KarpenterMachineTemplate{}
	uses.Spec.Template.Spec.InfrastructureRef = &clusterv1.ContractVersionedObjectReference{APIGroup: kind.Group, Kind: kind.Kind, Name: "x"}
	makes := uses.DeepCopy()
	makes.Spec.ScalableResource.Kind, makes.Spec.Template.Spec.InfrastructureRef.Kind = v1alpha1.ScalableResourceKindMachinePool, "TestMachineTemplateTemplate"
	user := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: "deployment"}}
	user.Spec.Template.Spec.InfrastructureRef = *uses.Spec.Template.Spec.InfrastructureRef
	for name, tc := range map[string]struct {
		template  *v1alpha1.KarpenterMachineTemplate
		resources []*scalable.Resource
		err       error // of the list
		fails     bool
	}{
		"of other templates, for now":   {template: &v1alpha1.KarpenterMachineTemplate{}, err: errors.New("timeout"), fails: true},
		"of other templates":            {template: &v1alpha1.KarpenterMachineTemplate{}},
		"of a template that is deleted": {},
		"of the template":               {template: uses, fails: true},
		"of what is generated from it":  {template: makes, fails: true},
		"of an earlier resource of it":  {resources: []*scalable.Resource{scalable.New(user)}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			management := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithInterceptorFuncs(interceptor.Funcs{
				List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
					if tc.err != nil {
						return tc.err
					}
					return reference.Unlisted{Kind: kind.GroupKind()}
				},
			}).Build()
			r := NewReconciler(&clients.Clusters{Cluster: served, Management: fixture.Cluster{Client: management}}, nil, clocktesting.NewFakeClock(time.Now()))
			r.kinds = enqueue.NewKinds(nil, nil, kind)
			if _, _, err := r.keepCopies(t.Context(), "general", tc.template, tc.resources); (err != nil) != tc.fails {
				t.Errorf("got %v, want an error: %t", err, tc.fails)
			}
		})
	}
}

// An object that a resource refers to is there, whatever labels a provider gives it.
func TestKeepCopiesMakesNothingThatIsThere(t *testing.T) {
	served := types.NamespacedName{Namespace: "fleet", Name: "served"}
	kind := schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1", Kind: "TestMachinePool"}
	labels := map[string]string{v1alpha1.TemplateLabel: "general"}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	object.SetNamespace(served.Namespace)
	object.SetName("pool")
	object.SetLabels(lo.Assign(scalable.GeneratedLabels(served, "general"), map[string]string{clusterv1.MachinePoolNameLabel: "pool"}))
	pool := &clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: "pool", Labels: labels}}
	pool.Spec.Template.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: kind.Group, Kind: kind.Kind, Name: "pool"}
	management := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(object, pool,
		&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: served.Name}}).Build()
	// Without a catalogue, to make it again would panic.
	r := NewReconciler(&clients.Clusters{Cluster: served, Management: fixture.Cluster{Client: management}}, nil, clocktesting.NewFakeClock(time.Now()))
	r.kinds = enqueue.NewKinds(nil, nil, kind)
	keepCopies(t, r, &v1alpha1.KarpenterMachineTemplate{})
}

// A copy is owned by the MachineDeployments of its own Cluster. One of another Cluster keeps
// its owners, even if a MachineDeployment here refers to its name.
func TestKeepCopiesSetsOwnersOfItsOwnCluster(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1", Kind: "TestMachineTemplate"}
	served := types.NamespacedName{Namespace: "fleet", Name: "served"}
	for name, tc := range map[string]struct {
		cluster    string
		pool       bool // a MachinePool refers to it
		controlled bool // one of its owners controls it
		ends       bool // it is being deleted
		want       []string
	}{
		"of the served Cluster": {cluster: served.Name, want: []string{"served", "deployment"}},
		"that another controls": {cluster: served.Name, controlled: true, want: []string{"served", "deployment"}},
		"that is being deleted": {cluster: served.Name, ends: true, want: []string{"served", "theirs"}},
		"of another Cluster":    {cluster: "neighbour", want: []string{"neighbour", "theirs"}},
		"of a MachinePool":      {cluster: served.Name, pool: true, want: []string{"served", "theirs"}},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			object.SetGroupVersionKind(kind)
			object.SetNamespace(served.Namespace)
			object.SetName("copy")
			object.SetLabels(scalable.GeneratedLabels(types.NamespacedName{Namespace: served.Namespace, Name: tc.cluster}, "general"))
			object.SetOwnerReferences([]metav1.OwnerReference{
				{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: tc.cluster, UID: "c"},
				{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachineDeployment", Name: "theirs", UID: "t"},
			})
			deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{
				Namespace: served.Namespace, Name: "deployment", UID: "d", Labels: scalable.GeneratedLabels(served, "general"),
			}}
			deployment.Spec.Template.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: kind.Group, Kind: kind.Kind, Name: "copy"}
			var user client.Object = deployment
			if tc.pool {
				pool := &clusterv1.MachinePool{ObjectMeta: deployment.ObjectMeta}
				pool.Spec.Template = deployment.Spec.Template
				user = pool
			}
			if tc.controlled {
				owners := object.GetOwnerReferences()
				owners[0].Controller = new(true)
				object.SetOwnerReferences(owners)
			}
			if tc.ends {
				object.SetDeletionTimestamp(new(metav1.Now()))
				object.SetFinalizers([]string{"x"})
			}
			management := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(object, user,
				&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: served.Name}}).Build()
			r := NewReconciler(&clients.Clusters{Cluster: served, Management: fixture.Cluster{Client: management}}, nil, clocktesting.NewFakeClock(time.Now()))
			r.kinds = enqueue.NewKinds(nil, nil, kind)
			keepCopies(t, r, nil)
			after := &unstructured.Unstructured{}
			after.SetGroupVersionKind(kind)
			if err := management.Get(t.Context(), client.ObjectKeyFromObject(object), after); err != nil {
				t.Fatal(err)
			}
			got := lo.Map(after.GetOwnerReferences(), func(owner metav1.OwnerReference, _ int) string { return owner.Name })
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
		})
	}
}

// The watch of copies drops updates that change owners only, so no event may follow a conflict.
func TestReconcileTriesAConflictAgain(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1", Kind: "TestMachineTemplate"}
	served := types.NamespacedName{Namespace: "fleet", Name: "served"}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	object.SetNamespace(served.Namespace)
	object.SetName("copy")
	object.SetLabels(scalable.GeneratedLabels(served, "general"))
	deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: served.Namespace, Name: "deployment", UID: "d", Labels: scalable.GeneratedLabels(served, "general"),
	}}
	deployment.Spec.Template.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: kind.Group, Kind: kind.Kind, Name: "copy"}
	changes := 1
	management := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(object, deployment,
		&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: served.Name}}).
		WithInterceptorFuncs(interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if changes > 0 {
				changes--
				theirs := object.DeepCopyObject().(client.Object)
				theirs.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Owner", Name: "o", UID: "o"}})
				if err := c.Update(ctx, theirs); err != nil {
					return err
				}
			}
			return c.Patch(ctx, object, patch, opts...)
		}}).Build()
	clusters := &clients.Clusters{Cluster: served, Management: fixture.Cluster{Client: management}, Workload: fixture.Cluster{Client: management}}
	r := NewReconciler(clusters, nil, clocktesting.NewFakeClock(time.Now()))
	r.kinds = enqueue.NewKinds(nil, nil, kind)
	request := reconcile.Request{NamespacedName: types.NamespacedName{Name: "general"}}
	if result, err := r.Reconcile(t.Context(), request); err != nil || result.RequeueAfter == 0 {
		t.Fatalf("after a conflict: got %v and %v, want another reconcile", result, err)
	}
	if result, err := r.Reconcile(t.Context(), request); err != nil || result.RequeueAfter != 0 {
		t.Fatalf("got %v and %v, want no further reconcile", result, err)
	}
	if err := management.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
	if len(object.GetOwnerReferences()) != 2 {
		t.Errorf("got owners %v, want that of another writer and the MachineDeployment", object.GetOwnerReferences())
	}
}
