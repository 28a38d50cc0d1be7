// SPDX-License-Identifier: Apache-2.0

package clusterdeletion

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

var served = types.NamespacedName{Namespace: "fleet", Name: "served"}

// machine returns a Machine with hooks on a Node.
func machine(name, node string, hooks ...string) *clusterv1.Machine {
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: served.Namespace, Name: name, UID: types.UID(name), Annotations: map[string]string{"pre-terminate.delete.hook.machine.cluster.x-k8s.io/another": ""},
	}}
	machine.Status.NodeRef.Name, machine.Spec.ClusterName = node, served.Name
	for _, hook := range hooks {
		machine.Annotations[hook] = ""
	}
	return machine
}

// The hooks of all Machines are removed from the deletion of the Cluster on, those of the operator's own
// Node last, and never those of others.
func TestHooksAreRemoved(t *testing.T) {
	now := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	cluster := func(deleting, paused bool) *clusterv1.Cluster {
		cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: served.Name, Finalizers: []string{clusterv1.ClusterFinalizer}}}
		cluster.Spec.Paused = &paused
		if deleting {
			cluster.DeletionTimestamp = &now
		}
		return cluster
	}
	all := []string{"booting", "deployment", "own", "pool"}
	for name, tc := range map[string]struct {
		cached, live *clusterv1.Cluster
		node         string
		want         [][]string // the Machines with hooks after each reconcile
	}{
		"the Cluster stays":                         {cached: cluster(false, false), want: [][]string{all}},
		"it is being deleted":                       {cached: cluster(true, false), want: [][]string{nil}},
		"the operator runs on one of its Nodes":     {cached: cluster(true, false), node: "n3", want: [][]string{{"own"}, nil}},
		"the operator runs on another Node":         {cached: cluster(true, false), node: "another", want: [][]string{nil}},
		"it is being deleted and is paused":         {cached: cluster(true, true), want: [][]string{all}},
		"it does not exist":                         {want: [][]string{nil}},
		"it exists, and the cache does not have it": {live: cluster(false, false), want: [][]string{all}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{
				machine("booting", "", v1alpha1.DrainHookAnnotation),
				machine("deployment", "n1", v1alpha1.DrainHookAnnotation),
				machine("pool", "n2", v1alpha1.DrainHookAnnotation, v1alpha1.TerminateHookAnnotation),
				machine("own", "n3", v1alpha1.TerminateHookAnnotation),
				machine("unmanaged", "n4"),
			}
			live := fake.NewClientBuilder().WithScheme(scheme.Scheme)
			if tc.cached != nil {
				objects = append(objects, tc.cached)
			}
			if tc.live != nil {
				live = live.WithObjects(tc.live)
			}
			cached := fixture.WithJSONPatch(fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).Build())
			r := NewReconciler(&clients.Clusters{Cluster: served, Management: fixture.Cluster{Client: cached, Live: live.Build()}}, tc.node)
			for i, want := range tc.want {
				if result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: served}); err != nil || result.RequeueAfter != 0 {
					t.Fatalf("got %v and %v", result, err)
				}
				machines := &clusterv1.MachineList{}
				if err := cached.List(t.Context(), machines); err != nil {
					t.Fatal(err)
				}
				var got []string
				for j := range machines.Items {
					if lifecycle.HasHooks(&machines.Items[j]) {
						got = append(got, machines.Items[j].Name)
					}
					if len(machines.Items[j].Annotations) == 0 {
						t.Errorf("Machine %s has lost the hook of another controller", machines.Items[j].Name)
					}
				}
				slices.Sort(got)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("with hooks after reconcile %d (-want +got):\n%s", i+1, diff)
				}
			}
		})
	}
}

// The API server answers slowly while Cluster API deletes everything of a Cluster. The writes do not wait for each other.
func TestSlowWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var objects []client.Object
		for i := range 4 * writers {
			objects = append(objects, machine(fmt.Sprintf("m%d", i), "", v1alpha1.DrainHookAnnotation))
		}
		slow := interceptor.NewClient(fixture.WithJSONPatch(fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).Build()), interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
				time.Sleep(time.Second)
				return c.Patch(ctx, object, patch, options...)
			},
		})
		none := fake.NewClientBuilder().WithScheme(scheme.Scheme).Build()
		r := NewReconciler(&clients.Clusters{Cluster: served, Management: fixture.Cluster{Client: slow, Live: none}}, "")
		began := time.Now()
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: served}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 4*time.Second {
			t.Errorf("%d writes of a second each took %s", len(objects), took)
		}
		machines := &clusterv1.MachineList{}
		if err := slow.List(t.Context(), machines); err != nil {
			t.Fatal(err)
		}
		if held := slices.ContainsFunc(machines.Items, func(m clusterv1.Machine) bool { return lifecycle.HasHooks(&m) }); held {
			t.Error("a Machine still has hooks")
		}
	})
}

// The events of the other Machines trigger the reconcile that removes the last hooks.
func TestHooksChanged(t *testing.T) {
	with, without := machine("m", "n", v1alpha1.TerminateHookAnnotation), machine("m", "n")
	passes := hooksChanged()
	for name, tc := range map[string]struct{ got, want bool }{
		"created with a hook":    {passes.Create(event.CreateEvent{Object: with}), true},
		"created without":        {passes.Create(event.CreateEvent{Object: without}), false},
		"it gets a hook":         {passes.Update(event.UpdateEvent{ObjectOld: without, ObjectNew: with}), true},
		"its hooks were removed": {passes.Update(event.UpdateEvent{ObjectOld: with, ObjectNew: without}), true},
		"it keeps its hook":      {passes.Update(event.UpdateEvent{ObjectOld: with, ObjectNew: with}), false},
		"deleted with a hook":    {passes.Delete(event.DeleteEvent{Object: with}), true},
		"deleted without":        {passes.Delete(event.DeleteEvent{Object: without}), false},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: passes is %t, want %t", name, tc.got, tc.want)
		}
	}
}
