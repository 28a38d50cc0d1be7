// SPDX-License-Identifier: Apache-2.0

package interruption

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/signals"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

const taintKey = "example.com/ends"

// template has a mark on one of its offerings.
func template() *v1alpha1.KarpenterMachineTemplate {
	template := &v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "general", UID: "general", Generation: 1}}
	template.Status.UnavailableOfferings = []v1alpha1.UnavailableOffering{
		{InstanceType: "marked", Zone: "a", CapacityType: "spot", Reason: "InsufficientCapacity", Failures: 1, Until: metav1.NewTime(fixture.Noon.Add(time.Minute))},
	}
	return template
}

// pair returns a registered Node with the taint, and its claim. Both have the name, and the claim has the
// instance type and the capacity type.
func pair(name, instanceType, capacityType string, change ...func(*corev1.Node, *karpv1.NodeClaim)) []client.Object {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("node-" + name), Labels: map[string]string{
			karpv1.NodeRegisteredLabelKey: "true",
			karpv1.NodeClassLabelKey(schema.GroupKind{Group: v1alpha1.Group, Kind: v1alpha1.Kind}): "general",
		}},
		Spec: corev1.NodeSpec{ProviderID: "sim://" + name, Taints: []corev1.Taint{{Key: taintKey, Effect: corev1.TaintEffectNoSchedule}}},
	}
	claim := &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("claim-" + name), Finalizers: []string{karpv1.TerminationFinalizer}, Labels: map[string]string{
			corev1.LabelInstanceTypeStable: instanceType, corev1.LabelTopologyZone: "a", karpv1.CapacityTypeLabelKey: capacityType,
		}},
		Spec:   karpv1.NodeClaimSpec{NodeClassRef: &karpv1.NodeClassReference{Group: v1alpha1.Group, Kind: v1alpha1.Kind, Name: "general"}},
		Status: karpv1.NodeClaimStatus{ProviderID: node.Spec.ProviderID},
	}
	for _, f := range change {
		f(node, claim)
	}
	return []client.Object{node, claim}
}

// published are the objects and reasons of events, with the type of those that are no warnings, and whether the claim of a
// Node is unknown.
type published []string

func (p *published) Publish(all ...events.Event) {
	for _, event := range all {
		text := event.InvolvedObject.(client.Object).GetName() + " " + event.Reason
		if event.Type != corev1.EventTypeWarning {
			text += " " + event.Type
		}
		if strings.Contains(event.Message, "no Machine shows which") {
			text += ", unknown"
		}
		*p = append(*p, text)
	}
}

// testCluster is a workload cluster, and a reconciler that has just started.
type testCluster struct {
	client.WithWatch
	*Reconciler
	events published
	// writes counts the writes. patch and remove answer them; nil if the API server does.
	writes        int
	patch, remove func() error
	// before is called before the status of a template is written.
	before func()
	// unread is the provider ID whose claims cannot be listed.
	unread string
}

func newTestCluster(t *testing.T, objects ...client.Object) *testCluster {
	t.Helper()
	w := &testCluster{}
	do := func(fails func() error, write func() error) error {
		w.writes++
		if fails != nil {
			return fails()
		}
		return write()
	}
	w.WithWatch = fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.KarpenterMachineTemplate{}).
		WithIndex(&karpv1.NodeClaim{}, clients.NodeClaimProviderIDField, func(o client.Object) []string { return []string{o.(*karpv1.NodeClaim).Status.ProviderID} }).
		WithIndex(&clusterv1.Machine{}, clients.MachineProviderIDField, func(o client.Object) []string { return []string{o.(*clusterv1.Machine).Spec.ProviderID} }).
		WithIndex(&clusterv1.Machine{}, clients.MachineClaimField, func(o client.Object) []string { return []string{string(lifecycle.ClaimUID(o))} }).
		WithInterceptorFuncs(interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if of := (&client.ListOptions{}).ApplyOptions(options); w.unread != "" && of.FieldSelector != nil && strings.Contains(of.FieldSelector.String(), w.unread) {
					return errors.New("no answer")
				}
				return c.List(ctx, list, options...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, subresource string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
				if w.before != nil {
					w.before()
				}
				return do(w.patch, func() error { return c.SubResource(subresource).Patch(ctx, object, patch, options...) })
			},
			Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
				return do(w.remove, func() error { return c.Delete(ctx, object, options...) })
			},
		}).Build()
	parsed, err := signals.Parse("taint:" + taintKey)
	if err != nil {
		t.Fatal(err)
	}
	both := fixture.Cluster{Client: w, Live: w}
	clusters := &clients.Clusters{Cluster: fixture.Served, Workload: both, Management: both}
	w.Reconciler = NewReconciler(clusters, catalog.New(clusters), parsed, &w.events, clocktesting.NewFakePassiveClock(fixture.Noon))
	return w
}

// deleted returns the names of the claims that are being deleted.
func (w *testCluster) deleted(t *testing.T) []string {
	t.Helper()
	claims := &karpv1.NodeClaimList{}
	if err := w.List(t.Context(), claims); err != nil {
		t.Fatal(err)
	}
	return lo.FilterMap(claims.Items, func(c karpv1.NodeClaim, _ int) (string, bool) { return c.Name, !c.DeletionTimestamp.IsZero() })
}

// marked returns the instance types of the offerings that are marked as unavailable because of an interruption.
func (w *testCluster) marked(t *testing.T) []string {
	t.Helper()
	stored := &v1alpha1.KarpenterMachineTemplate{}
	if err := client.IgnoreNotFound(w.Get(t.Context(), types.NamespacedName{Name: "general"}, stored)); err != nil {
		t.Fatal(err)
	}
	var marked []string
	for _, o := range stored.Status.UnavailableOfferings {
		if o.Reason == v1alpha1.ReasonInterrupted {
			marked = append(marked, o.InstanceType)
			if o.Failures != 1 || !o.Until.Equal(&metav1.Time{Time: fixture.Noon.Add(3 * time.Minute)}) || !strings.Contains(o.Message, taintKey) {
				t.Errorf("got mark %+v", o)
			}
		}
	}
	return marked
}

func TestReconcile(t *testing.T) {
	for name, tc := range map[string]struct {
		objects []client.Object
		deleted []string
		marked  []string
		events  []string
		// writes is the number of writes, with those that fail.
		writes int
	}{
		"spot": {
			objects: slices.Concat(pair("n", "small", "spot"), []client.Object{template()}),
			deleted: []string{"n"}, marked: []string{"small"}, events: []string{"general Interrupted", "n Interrupted", "n Interrupted"}, writes: 2,
		},
		"reserved": {
			objects: slices.Concat(pair("n", "small", "reserved"), []client.Object{template()}),
			deleted: []string{"n"}, marked: []string{"small"}, events: []string{"general Interrupted", "n Interrupted", "n Interrupted"}, writes: 2,
		},
		"on demand, whose capacity is not taken away": {
			objects: slices.Concat(pair("n", "small", "on-demand"), []client.Object{template()}),
			deleted: []string{"n"}, events: []string{"n Interrupted", "n Interrupted"}, writes: 1,
		},
		"an offering that is marked already": {
			objects: slices.Concat(pair("n", "marked", "spot"), []client.Object{template()}),
			deleted: []string{"n"}, events: []string{"n Interrupted", "n Interrupted"}, writes: 1,
		},
		"two Nodes of one offering": {
			objects: slices.Concat(pair("m", "small", "spot"), pair("n", "small", "spot"), []client.Object{template()}),
			deleted: []string{"m", "n"}, marked: []string{"small"}, writes: 3,
			events: []string{"general Interrupted", "m Interrupted", "m Interrupted", "n Interrupted", "n Interrupted"},
		},
		"two offerings, in one write of the template": {
			objects: slices.Concat(pair("m", "large", "spot"), pair("n", "small", "spot"), []client.Object{template()}),
			deleted: []string{"m", "n"}, marked: []string{"large", "small"}, writes: 3,
			events: []string{"general Interrupted", "general Interrupted", "m Interrupted", "m Interrupted", "n Interrupted", "n Interrupted"},
		},
		"a template that no longer exists": {
			objects: pair("n", "small", "spot"), deleted: []string{"n"}, events: []string{"n Interrupted", "n Interrupted"}, writes: 1,
		},
		"no signal": {
			objects: slices.Concat(pair("n", "small", "spot", func(n *corev1.Node, _ *karpv1.NodeClaim) { n.Spec.Taints = nil }), []client.Object{template()}),
		},
		"a Node that is not registered yet": {
			objects: slices.Concat(pair("n", "small", "spot", func(n *corev1.Node, _ *karpv1.NodeClaim) { delete(n.Labels, karpv1.NodeRegisteredLabelKey) }), []client.Object{template()}),
		},
		"a Node of another provider": {
			objects: slices.Concat(pair("n", "small", "spot", func(n *corev1.Node, _ *karpv1.NodeClaim) {
				n.Labels = map[string]string{karpv1.NodeRegisteredLabelKey: "true", "karpenter.k8s.aws/ec2nodeclass": "x"}
			}), []client.Object{template()}),
		},
		"a Node without a claim": {
			objects: slices.Concat(pair("n", "small", "spot", func(_ *corev1.Node, c *karpv1.NodeClaim) { c.Status.ProviderID = "sim://other" }), []client.Object{template()}),
		},
		"a claim that is being deleted": {
			objects: slices.Concat(pair("n", "small", "spot", func(_ *corev1.Node, c *karpv1.NodeClaim) { c.DeletionTimestamp = &metav1.Time{Time: fixture.Noon} }), []client.Object{template()}),
			deleted: []string{"n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestCluster(t, tc.objects...)
			for range 2 { // the second reconcile must change nothing
				if result, err := w.Reconcile(t.Context(), reconcile.Request{}); err != nil || result != (reconcile.Result{}) {
					t.Fatalf("got %+v and error %v", result, err)
				}
			}
			slices.Sort(w.events)
			if diff := cmp.Diff([]any{tc.deleted, tc.marked, tc.events, tc.writes}, []any{w.deleted(t), w.marked(t), []string(w.events), w.writes}, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("deleted claims, marked offerings, events and writes (-want +got):\n%s", diff)
			}
		})
	}
}

// If not exactly one claim has the provider ID of the Node, the link of its Machine decides.
func TestClaimOfMachine(t *testing.T) {
	machine := func(change ...func(*clusterv1.Machine)) client.Object {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: "m",
			Labels: map[string]string{v1alpha1.NodeClaimUIDLabel: "claim-n"}, Annotations: map[string]string{v1alpha1.NodeClaimAnnotation: "n"}}}
		m.Spec.ProviderID, m.Status.NodeRef.Name = "sim://n", "n"
		for _, f := range change {
			f(m)
		}
		return m
	}
	second := func(change ...func(*corev1.Node, *karpv1.NodeClaim)) client.Object {
		return pair("second", "small", "on-demand", append(change, func(_ *corev1.Node, c *karpv1.NodeClaim) { c.Status.ProviderID = "sim://n" })...)[1]
	}
	shared := []string{"n Interrupted", "n Interrupted", "n ProviderIDShared", "n ProviderIDShared", "second ProviderIDShared"}
	unknown := []string{"n ProviderIDShared, unknown", "n ProviderIDShared, unknown", "second ProviderIDShared, unknown"}
	for name, tc := range map[string]struct {
		objects []client.Object
		deleted []string
		events  []string
	}{
		"two claims, and the Machine is linked to one":  {objects: []client.Object{second(), machine()}, deleted: []string{"n"}, events: shared},
		"the same, and its provider has changed its ID": {objects: []client.Object{second(), machine(func(m *clusterv1.Machine) { m.Spec.ProviderID = "sim://new" })}, deleted: []string{"n"}, events: shared},
		"two claims without a Machine":                  {objects: []client.Object{second()}, events: unknown},
		"two claims, and a Machine without a link":      {objects: []client.Object{second(), machine(func(m *clusterv1.Machine) { m.Labels = nil })}, events: unknown},
		"two claims, and a Machine with another Node":   {objects: []client.Object{second(), machine(func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "x" })}, events: unknown},
		"two claims, and the link names a former claim": {objects: []client.Object{second(), machine(func(m *clusterv1.Machine) { m.Labels[v1alpha1.NodeClaimUIDLabel] = "former" })}, events: unknown},
		"no claim, but the Machine is linked to one": {objects: []client.Object{
			machine(func(m *clusterv1.Machine) {
				m.Labels[v1alpha1.NodeClaimUIDLabel], m.Annotations[v1alpha1.NodeClaimAnnotation] = "claim-other", "other"
			}),
			pair("other", "small", "on-demand")[1],
		}, deleted: []string{"other"}, events: []string{"n Interrupted", "other Interrupted"}},
	} {
		t.Run(name, func(t *testing.T) {
			of := pair("n", "small", "on-demand")
			if strings.HasPrefix(name, "no claim") {
				of = of[:1]
			}
			w := newTestCluster(t, slices.Concat(of, tc.objects, []client.Object{template()})...)
			if _, err := w.Reconcile(t.Context(), reconcile.Request{}); err != nil {
				t.Fatal(err)
			}
			slices.Sort(w.events)
			if diff := cmp.Diff([]any{tc.deleted, tc.events}, []any{w.deleted(t), []string(w.events)}, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("deleted claims and events (-want +got):\n%s", diff)
			}
		})
	}
}

// Whichever write fails, the next reconcile does the rest, and marks the offering once.
func TestFailedWrites(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{}, "general", errors.New("changed"))
	refused := errors.New("refused")
	for name, tc := range map[string]struct {
		patch, remove error
		wantErr       bool
		again         time.Duration
		// deleted and marked report what has happened after the failed write. In the end, the claim is deleted.
		deleted, marked, markedInTheEnd, remembered bool
	}{
		"a conflict of the mark":              {patch: conflict, again: time.Second, markedInTheEnd: true},
		"a template that was deleted":         {patch: apierrors.NewNotFound(schema.GroupResource{}, "general"), deleted: true},
		"a mark that cannot be written":       {patch: refused, deleted: true, remembered: true},
		"a claim that could not be deleted":   {remove: refused, wantErr: true, marked: true, markedInTheEnd: true},
		"a claim of that name is another one": {remove: conflict, marked: true, markedInTheEnd: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestCluster(t, append(pair("n", "small", "spot"), template())...)
			if tc.patch != nil {
				w.patch = func() error { return tc.patch }
			}
			if tc.remove != nil {
				w.remove = func() error { return tc.remove }
			}
			result, err := w.Reconcile(t.Context(), reconcile.Request{})
			if (err != nil) != tc.wantErr || result.RequeueAfter != tc.again {
				t.Errorf("got %+v and error %v", result, err)
			}
			if deleted, marked := len(w.deleted(t)) > 0, len(w.marked(t)) > 0; deleted != tc.deleted || marked != tc.marked {
				t.Errorf("after the failed write, deleted is %t and marked is %t", deleted, marked)
			}
			unavailable := lo.ContainsBy(w.catalog.Unavailable(template(), fixture.Noon), func(o v1alpha1.UnavailableOffering) bool { return o.InstanceType == "small" })
			if unavailable != tc.remembered {
				t.Errorf("the process remembers the mark: %t, want %t", unavailable, tc.remembered)
			}

			w.patch, w.remove = nil, nil
			if _, err := w.Reconcile(t.Context(), reconcile.Request{}); err != nil {
				t.Fatal(err)
			}
			if deleted, marked := len(w.deleted(t)) > 0, len(w.marked(t)) > 0; !deleted || marked != tc.markedInTheEnd {
				t.Errorf("in the end, deleted is %t and marked is %t", deleted, marked)
			}
		})
	}
}

// A Node whose claim cannot be read does not stop the others, and is handled when it can be read.
func TestAFailedReadStopsNoOtherNode(t *testing.T) {
	w := newTestCluster(t, slices.Concat(pair("m", "large", "spot"), pair("n", "small", "spot"), []client.Object{template()})...)
	w.unread = "sim://m"
	if _, err := w.Reconcile(t.Context(), reconcile.Request{}); err == nil || !strings.Contains(err.Error(), "listing the NodeClaims of Node m: no answer") {
		t.Errorf("got error %v, want that of Node m", err)
	}
	if diff := cmp.Diff([][]string{{"n"}, {"small"}}, [][]string{w.deleted(t), w.marked(t)}); diff != "" {
		t.Errorf("deleted claims and marked offerings (-want +got):\n%s", diff)
	}
	w.unread = ""
	if _, err := w.Reconcile(t.Context(), reconcile.Request{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"m", "n"}, w.deleted(t)); diff != "" {
		t.Errorf("in the end, deleted claims (-want +got):\n%s", diff)
	}
}

// The list of unavailable offerings is replaced as a whole, so one that another controller adds meanwhile is not lost.
func TestMarksOfOthersAreKept(t *testing.T) {
	w := newTestCluster(t, append(pair("n", "small", "spot"), template())...)
	w.before = func() {
		w.before = nil
		stored := &v1alpha1.KarpenterMachineTemplate{}
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(template()), stored); err != nil {
			t.Fatal(err)
		}
		stored.Status.UnavailableOfferings = append(stored.Status.UnavailableOfferings, v1alpha1.UnavailableOffering{
			InstanceType: "large", Zone: "a", CapacityType: "spot", Reason: "Other", Until: metav1.NewTime(fixture.Noon.Add(time.Hour)),
		})
		if err := w.Status().Update(t.Context(), stored); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the first write is a conflict
		if _, err := w.Reconcile(t.Context(), reconcile.Request{}); err != nil {
			t.Fatal(err)
		}
	}
	stored := &v1alpha1.KarpenterMachineTemplate{}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(template()), stored); err != nil {
		t.Fatal(err)
	}
	got := lo.Map(stored.Status.UnavailableOfferings, func(o v1alpha1.UnavailableOffering, _ int) string { return o.InstanceType })
	if diff := cmp.Diff([]string{"large", "marked", "small"}, slices.Sorted(slices.Values(got))); diff != "" {
		t.Errorf("unavailable instance types (-want +got):\n%s", diff)
	}
}

func TestAnnounced(t *testing.T) {
	signal := func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: taintKey, Effect: corev1.TaintEffectNoSchedule}}
	}
	unregistered := func(n *corev1.Node) { n.Labels[karpv1.NodeRegisteredLabelKey] = "false" }
	of := func(change ...func(*corev1.Node)) *corev1.Node {
		node := pair("n", "small", "spot")[0].(*corev1.Node)
		node.Spec.Taints = nil
		for _, f := range change {
			f(node)
		}
		return node
	}
	passes := newTestCluster(t).announced()
	for name, tc := range map[string]struct {
		before, after *corev1.Node
		want          bool
	}{
		"a signal is set":                  {before: of(), after: of(signal), want: true},
		"a Node with a signal registers":   {before: of(signal, unregistered), after: of(signal), want: true},
		"at the start, with a signal":      {after: of(signal), want: true},
		"at the start, without a signal":   {after: of()},
		"nothing changes":                  {before: of(), after: of()},
		"the signal is still set":          {before: of(signal), after: of(signal)},
		"the signal is removed":            {before: of(signal), after: of()},
		"a Node that is not registered":    {before: of(unregistered), after: of(signal, unregistered)},
		"a Node that is no longer present": {before: of(signal)},
	} {
		t.Run(name, func(t *testing.T) {
			var got bool
			switch {
			case tc.before == nil:
				got = passes.Create(event.CreateEvent{Object: tc.after})
			case tc.after == nil:
				got = passes.Delete(event.DeleteEvent{Object: tc.before})
			default:
				got = passes.Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after})
			}
			if got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

// A claim that was created again with the name of the interrupted one is not deleted.
func TestAnotherClaimOfTheNameIsNotDeleted(t *testing.T) {
	for name, tc := range map[string]struct {
		uid     types.UID // of the claim in the API server
		deleted []string
	}{
		"the same claim":            {uid: "claim-n", deleted: []string{"n"}},
		"another one with its name": {uid: "again"},
	} {
		t.Run(name, func(t *testing.T) {
			stored := pair("n", "small", "spot", func(_ *corev1.Node, c *karpv1.NodeClaim) { c.UID = tc.uid })
			w := newTestCluster(t, stored...)
			w.WithWatch = fixture.WithUIDs(w.WithWatch)
			read := pair("n", "small", "spot")
			if err := w.delete(t.Context(), &interruptedNode{node: read[0].(*corev1.Node), claim: read[1].(*karpv1.NodeClaim)}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.deleted, w.deleted(t), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("deleted claims (-want +got):\n%s", diff)
			}
		})
	}
}
