// SPDX-License-Identifier: Apache-2.0

package generatedcopy

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/enqueue"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// After a start, the operator watches the kinds of which copies exist, although no template refers to
// them.
func TestFindLeftovers(t *testing.T) {
	const infrastructure = "infrastructure.cluster.x-k8s.io"
	served := types.NamespacedName{Namespace: "fleet", Name: "served"}
	generated := scalable.GeneratedLabels(served, "deleted")
	mapper := meta.NewDefaultRESTMapper(nil)
	scoped := func(group, name string, scope meta.RESTScope) schema.GroupVersionKind {
		kind := schema.GroupVersionKind{Group: group, Version: "v1beta2", Kind: name}
		mapper.Add(kind, scope)
		return kind
	}
	kind := func(group, name string) schema.GroupVersionKind { return scoped(group, name, meta.RESTScopeNamespace) }
	var objects []client.Object
	crd := func(name string, labels map[string]string) {
		object := reference.CRD()
		object.SetName(name)
		object.SetLabels(labels)
		objects = append(objects, object)
	}
	add := func(kind schema.GroupVersionKind, namespace string, labels map[string]string) {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(kind)
		object.SetNamespace(namespace)
		object.SetName("object")
		object.SetLabels(labels)
		objects = append(objects, object)
		plural, _ := meta.UnsafeGuessKindToResource(kind)
		crd(plural.Resource+"."+kind.Group, map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta1_v1beta2"})
	}
	leftover := kind(infrastructure, "LeftTemplate")
	bootstrap := kind("bootstrap.cluster.x-k8s.io", "LeftConfigTemplate")
	add(leftover, served.Namespace, generated)
	add(bootstrap, served.Namespace, generated)
	add(kind(infrastructure, "Machine"), served.Namespace, lo.Assign(generated, map[string]string{clusterv1.MachineDeploymentNameLabel: "x"}))
	add(kind(infrastructure, "BaseTemplate"), served.Namespace, nil)
	add(kind(infrastructure, "NeighborTemplate"), served.Namespace, scalable.GeneratedLabels(types.NamespacedName{Name: "neighbor"}, "deleted"))
	add(kind(infrastructure, "DistantTemplate"), "another", generated)
	add(kind("controlplane.cluster.x-k8s.io", "PlaneTemplate"), served.Namespace, generated)
	crd("others.example.com", nil)
	crd("removedtemplates."+infrastructure, map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta2"}) // it is no longer served

	add(kind(infrastructure, "ForbiddenTemplate"), served.Namespace, generated)
	// Cluster API Provider vSphere has this kind. It has no namespace, so the operator has no right to list it.
	add(scoped(infrastructure, "VSphereClusterIdentity", meta.RESTScopeRoot), "", nil)

	known := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(known); err != nil {
		t.Fatal(err)
	}
	both := fixture.Cluster{Client: fake.NewClientBuilder().WithScheme(known).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		// Of the kinds in use, the installation does not have ForbiddenTemplate.
		Create: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
			review := object.(*authorizationv1.SelfSubjectAccessReview)
			attributes := review.Spec.ResourceAttributes
			review.Status.Allowed = attributes.Verb == "list" && attributes.Namespace == served.Namespace && attributes.Resource != "forbiddentemplates"
			return nil
		},
		List: func(ctx context.Context, all client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if kind := list.GetObjectKind().GroupVersionKind().Kind; kind == "ForbiddenTemplate" || kind == "VSphereClusterIdentity" {
				return errors.New("forbidden: " + kind)
			}
			return all.List(ctx, list, options...)
		},
	}).Build()}
	r := NewReconciler(&clients.Clusters{Cluster: served, Management: both}, nil, clocktesting.NewFakeClock(time.Now()))
	r.kinds = enqueue.NewKinds(unwatched{}, nil)
	if err := r.findLeftovers(t.Context(), mapper); err != nil {
		t.Fatal(err)
	}
	byName := func(kinds []schema.GroupVersionKind) map[string]bool {
		return lo.SliceToMap(kinds, func(kind schema.GroupVersionKind) (string, bool) { return kind.String(), true })
	}
	if diff := cmp.Diff(byName([]schema.GroupVersionKind{leftover, bootstrap}), byName(r.kinds.List())); diff != "" {
		t.Errorf("watched kinds (-want +got):\n%s", diff)
	}
}

// What the search could not read or watch is searched for again.
func TestFindLeftoversFails(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(watchedKind, meta.RESTScopeNamespace)
	known := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(known); err != nil {
		t.Fatal(err)
	}
	fails := errors.New("fails")
	for _, of := range []string{"rights", "copies", "watches"} {
		t.Run(of, func(t *testing.T) {
			object := &metav1.PartialObjectMetadata{}
			object.SetGroupVersionKind(watchedKind)
			object.SetNamespace(fixture.Served.Namespace)
			object.SetName("copy")
			object.SetLabels(scalable.GeneratedLabels(fixture.Served, "deleted"))
			// The search reads metadata, and the fake client converts nothing to that.
			crd, from := reference.CRD(), definition(watchedKind)
			crd.SetName(from.GetName())
			crd.SetLabels(from.GetLabels())
			management := fake.NewClientBuilder().WithScheme(known).WithObjects(crd, object).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
					object.(*authorizationv1.SelfSubjectAccessReview).Status.Allowed = true
					if of == "rights" {
						return fails
					}
					return nil
				},
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					if kind := list.GetObjectKind().GroupVersionKind().Kind; of == "copies" && strings.HasPrefix(kind, watchedKind.Kind) {
						return fails
					}
					return c.List(ctx, list, options...)
				},
			}).Build()
			r := NewReconciler(&clients.Clusters{Cluster: fixture.Served, Management: fixture.Cluster{Client: management}}, nil, clocktesting.NewFakeClock(time.Now()))
			r.kinds = enqueue.NewKinds(refusing{kind: watchedKind.Kind, err: fails}, nil)
			if err := r.findLeftovers(t.Context(), mapper); !errors.Is(err, fails) {
				t.Errorf("got %v, want that it is tried again", err)
			}
		})
	}
}
