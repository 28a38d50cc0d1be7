// SPDX-License-Identifier: Apache-2.0

package providerid

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

func provisional(name string) string { return planner.ProvisionalID(types.UID(name)) }

// claim returns a launched claim with its provisional ID. Its UID is its name.
func claim(name string, change ...func(*karpv1.NodeClaim)) *karpv1.NodeClaim {
	c := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Finalizers: []string{"karpenter.sh/termination"}}}
	c.Status.ProviderID = provisional(name)
	c.StatusConditions().SetTrue(karpv1.ConditionTypeLaunched)
	for _, f := range change {
		f(c)
	}
	return c
}

// machine returns a Machine that is linked to the claim c.
func machine(name, id string, change ...func(*clusterv1.Machine)) *clusterv1.Machine {
	m := fixture.OfMachineDeployment(fixture.Machine(time.Minute))
	m.Name, m.UID, m.Spec.ProviderID = name, types.UID(name), id
	m.Finalizers = []string{clusterv1.MachineFinalizer}
	m.Labels[v1alpha1.NodeClaimUIDLabel] = "c"
	m.Annotations = map[string]string{v1alpha1.NodeClaimAnnotation: "c"}
	for _, f := range change {
		f(m)
	}
	return m
}

func with(id string) func(*karpv1.NodeClaim) {
	return func(c *karpv1.NodeClaim) { c.Status.ProviderID = id }
}

func register(c *karpv1.NodeClaim) {
	c.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered)
	c.Status.NodeName = "node"
}

func deleting(o metav1.Object) { o.SetDeletionTimestamp(new(metav1.NewTime(fixture.Noon))) }

func newClient(objects ...client.Object) client.WithWatch {
	return fixture.WithJSONPatch(fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).WithStatusSubresource(&karpv1.NodeClaim{}).
		WithIndex(&karpv1.NodeClaim{}, clients.NodeClaimProviderIDField, func(o client.Object) []string { return []string{o.(*karpv1.NodeClaim).Status.ProviderID} }).
		WithIndex(&clusterv1.Machine{}, clients.MachineProviderIDField, func(o client.Object) []string { return []string{o.(*clusterv1.Machine).Spec.ProviderID} }).
		WithIndex(&clusterv1.Machine{}, clients.MachineClaimField, func(o client.Object) []string { return []string{string(lifecycle.ClaimUID(o))} }).Build())
}

func reconcilerOf(c client.Client) *Reconciler {
	both := fixture.Cluster{Client: c}
	return NewReconciler(&clients.Clusters{Cluster: fixture.Served, Workload: both, Management: both}, &published{})
}

// stored returns the claim c as the API server has it.
func stored(t *testing.T, c client.Reader) *karpv1.NodeClaim {
	t.Helper()
	claim := &karpv1.NodeClaim{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "c"}, claim); err != nil {
		t.Fatal(err)
	}
	return claim
}

func TestReconcile(t *testing.T) {
	older := func(m *clusterv1.Machine) {
		m.CreationTimestamp = metav1.NewTime(m.CreationTimestamp.Add(-time.Minute))
	}
	leaving := func(m *clusterv1.Machine) { deleting(m) }
	unlinked := func(m *clusterv1.Machine) { delete(m.Labels, v1alpha1.NodeClaimUIDLabel) }
	unlaunched := func(c *karpv1.NodeClaim) { c.Status.Conditions = nil; c.Status.ProviderID = "" }
	node := func(id string) client.Object {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}, Spec: corev1.NodeSpec{ProviderID: id}}
	}
	for name, tc := range map[string]struct {
		claim     *karpv1.NodeClaim
		objects   []client.Object
		want      string
		wantError bool
	}{
		"no Machine":                                                      {claim: claim("c"), want: provisional("c")},
		"its Machine has no ID yet":                                       {claim: claim("c"), objects: []client.Object{machine("m", "")}, want: provisional("c")},
		"its Machine has one":                                             {claim: claim("c"), objects: []client.Object{machine("m", "real://m")}, want: "real://m"},
		"before core has stored the launch":                               {claim: claim("c", unlaunched), objects: []client.Object{machine("m", "real://m")}},
		"it is being deleted":                                             {claim: claim("c", func(c *karpv1.NodeClaim) { deleting(c) }), objects: []client.Object{machine("m", "real://m")}, want: provisional("c")},
		"its Machine is leaving":                                          {claim: claim("c"), objects: []client.Object{machine("m", "real://m", leaving)}, want: provisional("c")},
		"its first Machine is leaving":                                    {claim: claim("c", with("real://m")), objects: []client.Object{machine("m", "real://m", leaving), machine("n", "real://n")}, want: "real://n"},
		"two Machines: it keeps the one that it has":                      {claim: claim("c", with("real://n")), objects: []client.Object{machine("m", "real://m", older), machine("n", "real://n")}, want: "real://n"},
		"two Machines: it gets the older one":                             {claim: claim("c"), objects: []client.Object{machine("m", "real://m", older), machine("a", "real://a")}, want: "real://m"},
		"the Machine serves another claim":                                {claim: claim("c"), objects: []client.Object{machine("m", "real://m", unlinked)}, want: provisional("c")},
		"before its Node has registered, and its Machine gets another ID": {claim: claim("c", with("real://first")), objects: []client.Object{machine("m", "real://m")}, want: "real://m"},
		"registered, and its Machine gets another ID":                     {claim: claim("c", with("real://first"), register), objects: []client.Object{machine("m", "real://m")}, want: "real://first"},
		"registered, and something has written the provisional ID":        {claim: claim("c", register), objects: []client.Object{machine("m", "real://m"), node("real://m")}, want: "real://m"},
		"the same, and its Machine has got another ID":                    {claim: claim("c", register), objects: []client.Object{machine("m", "real://m"), node("real://first")}, want: "real://first"},
		"the same, and its Node no longer exists":                         {claim: claim("c", register), objects: []client.Object{machine("m", "real://m")}, want: "real://m"},
		"registered, and something has removed its ID":                    {claim: claim("c", with(""), register), objects: []client.Object{machine("m", "real://m"), node("real://m")}, want: "real://m"},
		"another claim has the ID":                                        {claim: claim("c"), objects: []client.Object{machine("m", "real://m"), claim("d", with("real://m"))}, want: provisional("c"), wantError: true},
		"another claim that is being deleted has the ID":                  {claim: claim("c"), objects: []client.Object{machine("m", "real://m"), claim("d", with("real://m"), func(c *karpv1.NodeClaim) { deleting(c) })}, want: provisional("c")},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(append(tc.objects, tc.claim)...)
			_, err := reconcilerOf(c).Reconcile(t.Context(), request("c"))
			if (err != nil) != tc.wantError {
				t.Errorf("got error %v, want one: %t", err, tc.wantError)
			}
			after := stored(t, c)
			if after.Status.ProviderID != tc.want {
				t.Errorf("got provider ID %q, want %q", after.Status.ProviderID, tc.want)
			}
			if _, err := reconcilerOf(c).Reconcile(t.Context(), request("c")); (err != nil) != tc.wantError || stored(t, c).ResourceVersion != after.ResourceVersion {
				t.Errorf("the second reconcile writes, or returns %v", err)
			}
		})
	}
}

// The conditions of a claim are replaced as a whole, so what core writes meanwhile is a conflict.
func TestConflictsOfConditions(t *testing.T) {
	for name, before := range map[string]*karpv1.NodeClaim{
		"a claim that has waited": claim("c", func(c *karpv1.NodeClaim) {
			c.StatusConditions().SetUnknownWithReason(v1alpha1.ConditionMachineAvailable, v1alpha1.ReasonBlocked, "")
		}),
		"a claim whose Machine has another ID": claim("c", with("real://first"), register),
	} {
		t.Run(name, func(t *testing.T) {
			api := newClient(before, machine("m", "real://m", func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "node" }))
			read := stored(t, api)
			written := read.DeepCopy()
			written.StatusConditions().SetTrue(karpv1.ConditionTypeInitialized)
			if err := api.Status().Update(t.Context(), written); err != nil {
				t.Fatal(err)
			}
			cached := interceptor.NewClient(api, interceptor.Funcs{Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
				read.DeepCopyInto(object.(*karpv1.NodeClaim))
				return nil
			}})
			result, err := reconcilerOf(cached).Reconcile(t.Context(), request("c"))
			if err != nil || result.RequeueAfter == 0 {
				t.Errorf("got %+v and %v, want that it is tried again", result, err)
			}
			if after := stored(t, api); after.ResourceVersion != written.ResourceVersion {
				t.Errorf("it was written: %+v", after.Status)
			}
		})
	}
}

// Whatever has changed on the claim since it was read, nothing is written, and the write is tried again.
func TestConflicts(t *testing.T) {
	for name, change := range map[string]func(*karpv1.NodeClaim){
		"core writes a condition":     func(c *karpv1.NodeClaim) { c.StatusConditions().SetTrue(karpv1.ConditionTypeInitialized) },
		"another writer writes an ID": with("real://other"),
		"another claim has its name":  func(c *karpv1.NodeClaim) { c.UID = "again" },
		"core registers the Node":     register,
		"the claim is being deleted":  func(c *karpv1.NodeClaim) { deleting(c) },
	} {
		t.Run(name, func(t *testing.T) {
			read, changed := claim("c"), claim("c")
			change(changed)
			api := newClient(changed, machine("m", "real://m"))
			read.ResourceVersion = "1" // that of the stored claim is higher
			cached := interceptor.NewClient(api, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
				read.DeepCopyInto(object.(*karpv1.NodeClaim))
				return nil
			}})
			r := reconcilerOf(cached)
			result, err := r.Reconcile(t.Context(), request("c"))
			if err != nil || result.RequeueAfter == 0 {
				t.Errorf("got %+v and %v, want that it is tried again", result, err)
			}
			if got := stored(t, api).Status; got.ProviderID != changed.Status.ProviderID || len(*r.recorder.(*published)) > 0 {
				t.Errorf("it was written: %+v", got)
			}
		})
	}
}

// The claim names its Machine in the same write as the provider ID, and an event reports it once.
func TestMachineReady(t *testing.T) {
	c := newClient(claim("c"), machine("m", "real://m"))
	r := reconcilerOf(c)
	for range 2 {
		if _, err := r.Reconcile(t.Context(), request("c")); err != nil {
			t.Fatal(err)
		}
	}
	after := stored(t, c)
	if ready := after.StatusConditions().Get(v1alpha1.ConditionMachineReady); !ready.IsTrue() || ready.Message != "Machine m has its provider ID" || after.ResourceVersion != "1000" {
		t.Errorf("got the condition %+v in version %s, want one write after version 999", ready, after.ResourceVersion)
	}
	published := *r.recorder.(*published)
	if len(published) != 1 || published[0].Reason != v1alpha1.ReasonProviderIDSet || published[0].Message != "Machine m has provider ID real://m" {
		t.Errorf("got the events %+v", published)
	}

	if err := nodeclaims.ResetProviderID(t.Context(), c, after); err != nil {
		t.Fatal(err)
	}
	if ready := stored(t, c).StatusConditions().Get(v1alpha1.ConditionMachineReady); ready != nil {
		t.Errorf("a claim without a Machine has the condition %+v", ready)
	}
}

// A claim that has waited has its Machine now, which its condition shows.
func TestMachineAvailable(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*karpv1.NodeClaim)
		want   bool
	}{
		"it has not waited": {change: func(*karpv1.NodeClaim) {}},
		"it waited for Cluster API": {want: true, change: func(c *karpv1.NodeClaim) {
			c.StatusConditions().SetUnknownWithReason(v1alpha1.ConditionMachineAvailable, v1alpha1.ReasonBlocked, "")
		}},
		"it waited for a limit": {want: true, change: func(c *karpv1.NodeClaim) {
			c.StatusConditions().SetFalse(v1alpha1.ConditionMachineAvailable, "LimitReached", "")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(claim("c", tc.change), machine("m", "real://m"))
			if _, err := reconcilerOf(c).Reconcile(t.Context(), request("c")); err != nil {
				t.Fatal(err)
			}
			after := stored(t, c)
			if after.Status.ProviderID != "real://m" || after.StatusConditions().Get(v1alpha1.ConditionMachineAvailable).IsTrue() != tc.want {
				t.Errorf("got the status %+v", after.Status)
			}
		})
	}
}

// published are events.
type published []events.Event

func (p *published) Publish(all ...events.Event) {
	*p = append(*p, all...)
}

// A registered claim whose Machine gets another ID shows that, until it has its ID again. Nothing else
// writes the condition, and nothing is written twice.
func TestProviderIDChanged(t *testing.T) {
	m := machine("m", "real://m")
	m.Status.NodeRef.Name = "node"
	m.Spec.InfrastructureRef.Kind, m.Spec.InfrastructureRef.Name = "TestMachine", "m-infra"
	c := newClient(claim("c", with("real://m"), register), m)
	r := reconcilerOf(c)
	reports := r.recorder.(*published)
	for _, step := range []struct {
		id     string
		want   metav1.ConditionStatus // empty for no condition
		events int
	}{
		{id: "real://m"},
		{id: "real://x", want: metav1.ConditionFalse, events: 1},
		{id: "real://y", want: metav1.ConditionFalse, events: 2},
		{id: "real://m", want: metav1.ConditionTrue, events: 2},
		{id: "", want: metav1.ConditionTrue, events: 2},
		{id: "real://x", want: metav1.ConditionFalse, events: 3},
	} {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
			t.Fatal(err)
		}
		m.Spec.ProviderID = step.id
		if err := c.Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		var version string
		for range 2 { // the second reconcile must change nothing
			version = stored(t, c).ResourceVersion
			if _, err := r.Reconcile(t.Context(), request("c")); err != nil {
				t.Fatal(err)
			}
		}
		after := stored(t, c)
		if after.ResourceVersion != version {
			t.Errorf("ID %q: the second reconcile writes", step.id)
		}
		condition := nodeclaims.ConditionOf(after, v1alpha1.ConditionProviderIDUnchanged)
		if (condition == nil) != (step.want == "") || condition != nil && condition.Status != step.want {
			t.Errorf("ID %q: got condition %+v, want status %q", step.id, condition, step.want)
		}
		if after.Status.ProviderID != "real://m" || len(*reports) != step.events {
			t.Errorf("ID %q: the claim has %s, and the events are %+v", step.id, after.Status.ProviderID, *reports)
		}
		for _, event := range *reports {
			if event.Type != corev1.EventTypeWarning || event.Reason != v1alpha1.ReasonProviderIDChanged {
				t.Errorf("got the event %+v", event)
			}
		}
		if step.want == metav1.ConditionFalse && condition != nil && condition.Reason != v1alpha1.ReasonProviderIDChanged {
			t.Errorf("got reason %s", condition.Reason)
		}
		for _, want := range []string{"real://x", "real://m", "Node node", "TestMachine m-infra", "delete this NodeClaim"} {
			if condition != nil && step.id == "real://x" && !strings.Contains(condition.Message, want) {
				t.Errorf("message %q lacks %q", condition.Message, want)
			}
		}
	}
}

// A second Machine, whose Node is not that of the claim, has another ID without a contradiction.
func TestSecondMachine(t *testing.T) {
	c := newClient(claim("c", with("real://first"), register), machine("m", "real://m", func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "other" }))
	if _, err := reconcilerOf(c).Reconcile(t.Context(), request("c")); err != nil {
		t.Fatal(err)
	}
	if after := stored(t, c); after.Status.ProviderID != "real://first" || nodeclaims.ConditionOf(after, v1alpha1.ConditionProviderIDUnchanged) != nil {
		t.Errorf("got status %+v", after.Status)
	}
}

// Of two Machines of a registered claim, only the one that serves it is compared with it.
func TestTwoMachinesOfARegisteredClaim(t *testing.T) {
	atNode := func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "node" }
	c := newClient(claim("c", with("real://m"), register), machine("a", "real://a", atNode), machine("m", "real://m", atNode))
	if _, err := reconcilerOf(c).Reconcile(t.Context(), request("c")); err != nil {
		t.Fatal(err)
	}
	if condition := nodeclaims.ConditionOf(stored(t, c), v1alpha1.ConditionProviderIDUnchanged); condition != nil {
		t.Errorf("got %+v", condition)
	}
}

// queued collects what a handler enqueues.
type queued struct {
	queue
	names []string
}

func (q *queued) Add(r reconcile.Request) { q.names = append(q.names, r.Name) }

// A claim is reconciled after each event that can change its ID: also when another claim that has the
// ID of its Machine loses it or ends.
func TestEvents(t *testing.T) {
	r := reconcilerOf(newClient(machine("m", "real://m")))
	other := claim("d", with("real://m"))
	for name, tc := range map[string]struct {
		before, after *karpv1.NodeClaim
		want          []string
	}{
		"core stores the launch":          {before: claim("c", func(c *karpv1.NodeClaim) { c.Status.Conditions = nil }), after: claim("c"), want: []string{"c"}},
		"core puts the ID back":           {before: claim("c", with("real://x")), after: claim("c"), want: []string{"c"}},
		"a condition of core":             {before: claim("c"), after: claim("c", func(c *karpv1.NodeClaim) { c.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered) })},
		"another claim loses its ID":      {before: other, after: claim("d"), want: []string{"c", "d"}},
		"another claim with the ID ends":  {before: other, want: []string{"c"}},
		"another claim without it, ends":  {before: claim("d")},
		"another claim gets a label only": {before: other, after: claim("d", with("real://m"), func(c *karpv1.NodeClaim) { c.Labels = map[string]string{"a": "b"} })},
	} {
		t.Run(name, func(t *testing.T) {
			q := &queued{}
			if tc.after == nil {
				r.ofClaim().Delete(t.Context(), event.DeleteEvent{Object: tc.before}, q)
			} else {
				r.ofClaim().Update(t.Context(), event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}, q)
			}
			if len(q.names) != len(tc.want) {
				t.Fatalf("got %v, want %v", q.names, tc.want)
			}
			for i := range tc.want {
				if q.names[i] != tc.want[i] {
					t.Errorf("got %v, want %v", q.names, tc.want)
				}
			}
		})
	}
}

// An error of the API server is returned, so that the controller tries again.
func TestRejectedWrite(t *testing.T) {
	c := interceptor.NewClient(newClient(claim("c"), machine("m", "real://m")), interceptor.Funcs{
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return apierrors.NewServiceUnavailable("no")
		},
	})
	if _, err := reconcilerOf(c).Reconcile(t.Context(), request("c")); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("got %v", err)
	}
}
