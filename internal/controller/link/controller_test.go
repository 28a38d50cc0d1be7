// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

var (
	machines = schema.GroupResource{Group: clusterv1.GroupVersion.Group, Resource: "machines"}
	request  = Request{Resource: resourceName, Claim: Object{Name: "c", UID: "c"}, Machine: Object{Name: "m", UID: "m"}}
)

// patched answers the patches of objects.
func patched(answer func(do func() error) error) interceptor.Funcs {
	return interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
		return answer(func() error { return c.Patch(ctx, object, patch, options...) })
	}}
}

// A link is written only if the API server shows the same claim, which still needs this Machine, and the Machine has none.
// The request ends, and its resource is reconciled, unless the API server could not be asked.
func TestLink(t *testing.T) {
	registered := func(id string) func(*karpv1.NodeClaim) {
		return func(c *karpv1.NodeClaim) {
			c.Status.ProviderID = id
			c.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered)
		}
	}
	waits := func(*karpv1.NodeClaim) {}
	withID := func(m *clusterv1.Machine) { m.Spec.ProviderID = "real://m" }
	for name, tc := range map[string]struct {
		claim   func(*karpv1.NodeClaim)  // nil if it does not exist
		machine func(*clusterv1.Machine) // nil if it does not exist
		answer  error                    // of the API server to the link
		linked  bool
		fails   bool
	}{
		"it waits":                           {claim: waits, machine: withID, linked: true},
		"it no longer exists":                {machine: withID},
		"another claim has its name":         {machine: withID, claim: func(c *karpv1.NodeClaim) { c.UID = "again" }},
		"it has the Node of another Machine": {machine: withID, claim: registered("real://other")},
		"it has the Node of this Machine":    {machine: withID, claim: registered("real://m"), linked: true},
		"it is being deleted": {machine: withID, claim: func(c *karpv1.NodeClaim) {
			c.Finalizers, c.DeletionTimestamp = []string{karpv1.TerminationFinalizer}, new(metav1.Now())
		}},
		"the Machine no longer exists": {claim: waits},
		"another Machine has its name": {claim: waits, machine: func(m *clusterv1.Machine) { m.UID = "again" }},
		"the Machine is linked":        {claim: waits, machine: linkedTo("other")},
		"the Machine is marked": {claim: waits, machine: func(m *clusterv1.Machine) {
			m.Annotations = map[string]string{v1alpha1.MarkedForDeletionAtAnnotation: ""}
		}},
		"the Machine has changed":        {claim: waits, machine: withID, answer: apierrors.NewConflict(machines, "m", errors.New("changed"))},
		"the API server does not answer": {claim: waits, machine: withID, answer: apierrors.NewTimeoutError("no answer", 0), fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if tc.claim != nil {
				objects = append(objects, claim("c", tc.claim))
			}
			if tc.machine != nil {
				objects = append(objects, machine("m", tc.machine))
			}
			api := newAPI(objects...)
			r := newReconciler(api, patched(func(do func() error) error {
				if tc.answer != nil {
					return tc.answer
				}
				return do()
			}), interceptor.Funcs{})
			var ended []string
			r.OnEnd(func(resource string) { ended = append(ended, resource) })
			r.Start(request)
			if _, err := r.Reconcile(t.Context(), request); (err != nil) != tc.fails {
				t.Fatalf("got %v, want an error: %t", err, tc.fails)
			}
			if got := tc.machine != nil && claimOf(t, api, "m") == "c"; got != tc.linked {
				t.Errorf("linked: %t, want %t", got, tc.linked)
			}
			if told := *r.recorder.(*published); (len(told) == 1 && told[0].Reason == v1alpha1.ReasonMachineLinked && told[0].Message == "Machine "+fixture.Served.Namespace+"/m serves this NodeClaim") != tc.linked || len(told) > 1 {
				t.Errorf("got the events %+v, want one: %t", told, tc.linked)
			}
			if open := len(r.Open(resourceName)) > 0; open != tc.fails || (len(ended) == 1) == tc.fails {
				t.Errorf("the request is open: %t, and it ended for %v", open, ended)
			}
		})
	}
}

// No link is written while the Cluster or the resource is paused, or if the Cluster no longer exists.
func TestNoLinkWhilePaused(t *testing.T) {
	pause := func(t *testing.T, api client.Client, object client.Object, change func()) {
		t.Helper()
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			t.Fatal(err)
		}
		change()
		if err := api.Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		change func(*testing.T, client.Client, *clusterv1.Cluster, *clusterv1.MachineDeployment)
		linked bool
	}{
		"neither": {change: func(*testing.T, client.Client, *clusterv1.Cluster, *clusterv1.MachineDeployment) {}, linked: true},
		"the Cluster is paused": {change: func(t *testing.T, api client.Client, cluster *clusterv1.Cluster, _ *clusterv1.MachineDeployment) {
			pause(t, api, cluster, func() { cluster.Spec.Paused = new(true) })
		}},
		"the resource is paused": {change: func(t *testing.T, api client.Client, _ *clusterv1.Cluster, deployment *clusterv1.MachineDeployment) {
			pause(t, api, deployment, func() { deployment.Spec.Paused = new(true) })
		}},
		"the Cluster no longer exists": {change: func(t *testing.T, api client.Client, cluster *clusterv1.Cluster, _ *clusterv1.MachineDeployment) {
			if err := api.Delete(t.Context(), cluster); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: resourceName}}
			deployment.Labels = map[string]string{v1alpha1.TemplateLabel: "general"}
			deployment.Spec.ClusterName = fixture.Served.Name
			api := newAPI(claim("c"), machine("m"), deployment)
			tc.change(t, api, &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name}}, deployment)
			r := newReconciler(api, interceptor.Funcs{}, interceptor.Funcs{})
			r.Start(request)
			if _, err := r.Reconcile(t.Context(), request); err != nil || len(r.Open(resourceName)) > 0 {
				t.Errorf("got %v, and the open requests %v", err, r.Open(resourceName))
			}
			if got := claimOf(t, api, "m") == "c"; got != tc.linked {
				t.Errorf("linked: %t, want %t", got, tc.linked)
			}
		})
	}
}

// A request waits for the controller, is in its queue once, and is of no other resource.
func TestRequests(t *testing.T) {
	r := newReconciler(newAPI(), interceptor.Funcs{}, interceptor.Funcs{})
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[Request]())
	defer queue.ShutDown()
	early, late := request, request
	late.Claim.UID = "late"
	r.Start(early)
	if err := r.open.source().Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	got := map[Request]int{}
	take := func() {
		for range queue.Len() {
			taken, _ := queue.Get()
			got[taken]++
			queue.Done(taken)
		}
	}
	take()
	r.Start(early) // it is open
	r.Start(late)
	take()
	if diff := cmp.Diff(map[Request]int{early: 1, late: 1}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if open := len(r.Open(resourceName)); open != 2 || len(r.Open("other")) > 0 {
		t.Errorf("%d requests are open, want 2", open)
	}
	if _, err := r.Reconcile(t.Context(), early); err != nil {
		t.Fatal(err)
	}
	r.Start(early)
	if take(); got[early] != 2 {
		t.Errorf("got %v, want that it was started again after its end", got)
	}
}

// A cache that lacks what this process has written does not make it write a second link.
func TestLinkKnowsItsOwnWrites(t *testing.T) {
	api := newAPI(claim("c"), claim("d"), machine("m"))
	cached := machine("m")
	cached.ResourceVersion = "1"
	r := newReconciler(api, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
		if stale, is := object.(*clusterv1.Machine); is {
			cached.DeepCopyInto(stale)
			return nil
		}
		return c.Get(ctx, key, object, options...)
	}}, interceptor.Funcs{})
	for _, claim := range []string{"c", "d"} {
		again := request
		again.Claim = Object{Name: claim, UID: types.UID(claim)}
		if _, err := r.Reconcile(t.Context(), again); err != nil {
			t.Fatal(err)
		}
	}
	if uid := claimOf(t, api, "m"); uid != "c" {
		t.Errorf("Machine m is linked to %q, want c", uid)
	}
}

// After a link that the API server did not confirm, the Machine is read again, if it could not be read at once: the
// cache may lack the link.
func TestMachineOfAnUncertainLinkIsReadAgain(t *testing.T) {
	api, silent := newAPI(claim("c"), machine("m")), false
	noAnswer := errors.New("no answer")
	r := newReconciler(api, patched(func(do func() error) error {
		if err := do(); err != nil {
			return err
		}
		silent = true
		return noAnswer
	}), interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
		if silent {
			return noAnswer
		}
		return c.Get(ctx, key, object, options...)
	}})
	cached := []clusterv1.Machine{*machine("m", func(m *clusterv1.Machine) { m.ResourceVersion = "1" })}
	if _, err := r.Newest(t.Context(), resourceName, cached); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reconcile(t.Context(), request); !errors.Is(err, noAnswer) {
		t.Fatalf("got %v, want %v", err, noAnswer)
	}
	if _, err := r.Newest(t.Context(), resourceName, cached); !errors.Is(err, noAnswer) {
		t.Errorf("got %v without an answer, want %v", err, noAnswer)
	}
	silent = false
	newest, err := r.Newest(t.Context(), resourceName, cached)
	if err != nil || len(newest) != 1 || newest[0].Labels[v1alpha1.NodeClaimUIDLabel] != "c" {
		t.Errorf("got %+v and %v, want the Machine with its link", newest, err)
	}
}
