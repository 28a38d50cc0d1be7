// SPDX-License-Identifier: Apache-2.0

package coremetrics

import (
	"maps"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// observation is what a user sees after a step.
type observation struct {
	Scrape scrape
	Events []string
}

// Operatorpkg's status controllers and the ones that replace them have the same series and events after each step.
// Operatorpkg's reconcile all objects then, because they request that. Ours reconcile only those with an event.
func TestStatusMetricsAreTheSame(t *testing.T) {
	core, ours := observe(t, false), observe(t, true)
	names := map[string]string{}
	for i, step := range steps {
		if diff := difference(core[i], ours[i]); diff != "" {
			t.Errorf("%s (-core +ours):\n%s", step.name, diff)
		}
		maps.Copy(names, core[i].Scrape.Texts)
	}
	// Three kinds have six metrics each, and share six deprecated ones.
	if len(names) != 24 {
		t.Errorf("%d metrics are compared, want 24", len(names))
	}
}

// observe runs all steps and returns what is seen after each.
func observe(t *testing.T, replaced bool) (seen []observation) {
	synctest.Test(t, func(t *testing.T) {
		useRegistry(t)
		w, recorder := newWorld(), record.NewFakeRecorder(1000)
		controllers := newStatusControllers(w, recorder)
		if replaced {
			for kind, core := range controllers {
				controllers[kind] = Replace(core, nil)
			}
		}
		for _, step := range steps {
			before := w.copy()
			step.do(w)
			for _, k := range w.sorted(before) {
				c := controllers[k.kind].(reconcile.Reconciler)
				if replaced && !concerns(c.(*statusController), before[k], w.objects[k]) {
					continue
				}
				result, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: k.name}})
				if err != nil {
					t.Fatalf("%s: reconciling %v: %v", step.name, k, err)
				}
				if replaced && !result.IsZero() {
					t.Errorf("%s: reconciling %v requests %+v", step.name, k, result)
				}
			}
			seen = append(seen, observation{Scrape: scraped(t)})
			for last := &seen[len(seen)-1]; len(recorder.Events) > 0; {
				last.Events = append(last.Events, <-recorder.Events)
			}
		}
	})
	return seen
}

// concerns reports whether a step causes an event that reaches the controller.
func concerns(c *statusController, before, after client.Object) bool {
	if before == nil || after == nil {
		return true
	}
	if reflect.DeepEqual(before, after) {
		return false
	}
	for _, changes := range c.changes {
		if !changes.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
			return false
		}
	}
	return true
}

// Each change of what the status controller reads is reconciled, and nothing else.
func TestNodeChanges(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*corev1.Node)
		want   bool
	}{
		"heartbeat": {change: func(n *corev1.Node) { n.Status.Conditions[0].LastHeartbeatTime = metav1.Now() }},
		"message":   {change: func(n *corev1.Node) { n.Status.Conditions[0].Message = "kubelet is posting ready status" }},
		"images":    {change: func(n *corev1.Node) { n.Status.Images = []corev1.ContainerImage{{Names: []string{"image"}}} }},
		"status":    {change: func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }, want: true},
		"reason":    {change: func(n *corev1.Node) { n.Status.Conditions[0].Reason = "KubeletReady" }, want: true},
		"time":      {change: func(n *corev1.Node) { n.Status.Conditions[0].LastTransitionTime = metav1.Now() }, want: true},
		"condition": {change: func(n *corev1.Node) { n.Status.Conditions = nil }, want: true},
		"label":     {change: func(n *corev1.Node) { n.Labels = map[string]string{karpv1.NodePoolLabelKey: "pool"} }, want: true},
		"finalizer": {change: func(n *corev1.Node) { n.Finalizers = []string{karpv1.TerminationFinalizer} }, want: true},
		"deletion":  {change: func(n *corev1.Node) { n.DeletionTimestamp = new(metav1.Now()) }, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			before := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
			}}}
			after := before.DeepCopy()
			tc.change(after)
			if got := nodeChanges.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

// steps are what happens to objects, one after the other.
var steps = []struct {
	name string
	do   func(*world)
}{
	{"objects exist", func(w *world) {
		for _, name := range []string{"a", "b"} {
			w.create(&karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
				Labels: map[string]string{karpv1.NodePoolLabelKey: "a"}, Finalizers: []string{karpv1.TerminationFinalizer},
			}}, name)
			w.create(&karpv1.NodePool{}, name)
			w.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{karpv1.NodePoolLabelKey: "a"}}}, name)
			setNodeCondition(w.node(name), corev1.NodeReady, corev1.ConditionFalse, "KubeletNotReady")
			setNodeCondition(w.node(name), corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure")
		}
	}},
	{"time passes", func(*world) { time.Sleep(9 * time.Second) }},
	{"conditions become True", func(w *world) {
		w.claim("a").StatusConditions().SetTrue(karpv1.ConditionTypeLaunched)
		w.pool("a").StatusConditions().SetTrue(karpv1.ConditionTypeNodeClassReady)
		setNodeCondition(w.node("a"), corev1.NodeReady, corev1.ConditionTrue, "KubeletReady")
	}},
	{"a kubelet renews its conditions", func(w *world) {
		time.Sleep(5 * time.Minute)
		for i := range w.node("a").Status.Conditions {
			w.node("a").Status.Conditions[i].LastHeartbeatTime = metav1.Now()
		}
	}},
	{"only reasons change", func(w *world) {
		time.Sleep(time.Second)
		w.claim("a").StatusConditions().SetTrueWithReason(karpv1.ConditionTypeLaunched, "Again", "")
		setNodeCondition(w.node("b"), corev1.NodeReady, corev1.ConditionFalse, "NetworkNotReady")
	}},
	{"all conditions of a claim become True", func(w *world) {
		time.Sleep(time.Minute)
		for _, condition := range []string{karpv1.ConditionTypeRegistered, karpv1.ConditionTypeInitialized, karpv1.ConditionTypeConsolidatable} {
			w.claim("a").StatusConditions().SetTrue(condition)
		}
	}},
	{"labels change", func(w *world) {
		w.node("a").Labels[karpv1.NodeInitializedLabelKey] = "true"
		w.claim("b").Labels[karpv1.NodePoolLabelKey] = "b"
	}},
	{"a label and a condition of a Node change", func(w *world) {
		time.Sleep(time.Second)
		w.node("b").Labels[karpv1.NodeInitializedLabelKey] = "true"
		setNodeCondition(w.node("b"), corev1.NodeReady, corev1.ConditionTrue, "KubeletReady")
	}},
	{"conditions are removed", func(w *world) {
		_ = w.claim("a").StatusConditions().Clear(karpv1.ConditionTypeConsolidatable)
		w.node("a").Status.Conditions = w.node("a").Status.Conditions[:1]
	}},
	{"a condition is set back", func(w *world) {
		time.Sleep(time.Hour)
		w.pool("a").StatusConditions().SetFalse(karpv1.ConditionTypeNodeClassReady, "NotReady", "wait")
		w.claim("a").Status.Conditions[0].LastTransitionTime = metav1.Now()
	}},
	{"finalizers are added", func(w *world) {
		w.node("a").Finalizers = []string{karpv1.TerminationFinalizer, "example.com/other"}
		w.pool("b").Finalizers = []string{"example.com/other"}
	}},
	{"objects are marked for deletion", func(w *world) {
		for _, object := range []client.Object{w.claim("a"), w.pool("b"), w.node("a")} {
			object.SetDeletionTimestamp(new(metav1.Now()))
		}
	}},
	{"they terminate", func(w *world) {
		time.Sleep(3 * time.Second)
		w.claim("a").StatusConditions().SetTrue(karpv1.ConditionTypeDrained)
	}},
	{"a finalizer is removed", func(w *world) {
		time.Sleep(time.Second)
		w.node("a").Finalizers = []string{"example.com/other"}
	}},
	{"objects no longer exist", func(w *world) {
		time.Sleep(time.Minute)
		for _, k := range []key{{"NodeClaim", "a"}, {"NodePool", "b"}, {"Node", "a"}, {"Node", "b"}} {
			delete(w.objects, k)
		}
	}},
	{"one is created again", func(w *world) {
		w.create(&karpv1.NodeClaim{}, "a")
		w.claim("a").StatusConditions().SetTrue(karpv1.ConditionTypeLaunched)
	}},
	{"nothing exists", func(w *world) { clear(w.objects) }},
}

func setNodeCondition(node *corev1.Node, kind corev1.NodeConditionType, status corev1.ConditionStatus, reason string) {
	condition := corev1.NodeCondition{Type: kind, Status: status, Reason: reason, LastTransitionTime: metav1.Now()}
	for i, c := range node.Status.Conditions {
		if c.Type == kind {
			if c.Status == status {
				condition.LastTransitionTime = c.LastTransitionTime
			}
			node.Status.Conditions[i] = condition
			return
		}
	}
	node.Status.Conditions = append(node.Status.Conditions, condition)
}
