// SPDX-License-Identifier: Apache-2.0

package pendingpods

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// published are the events that were published.
type published []events.Event

func (p *published) Publish(all ...events.Event) { *p = append(*p, all...) }

// pool returns a NodePool; its template is not ready for the given reason, or is ready if that is empty.
func pool(name, reason string, change ...func(*karpv1.NodePool)) *karpv1.NodePool {
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	pool.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: v1alpha1.Group, Kind: v1alpha1.Kind, Name: "general"}
	pool.StatusConditions().SetTrue(karpv1.ConditionTypeValidationSucceeded)
	if reason == "" {
		pool.StatusConditions().SetTrue(karpv1.ConditionTypeNodeClassReady)
	} else {
		pool.StatusConditions().SetFalse(karpv1.ConditionTypeNodeClassReady, reason, "spec.paused of the Cluster is true")
	}
	for _, f := range change {
		f(pool)
	}
	return pool
}

// pod returns a Pod for which kube-scheduler has found no Node.
func pod(change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "p"}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	for _, f := range change {
		f(pod)
	}
	return pod
}

// A Pod gets an event only if it waits, and all NodePools that it could use are not ready.
func TestReconcile(t *testing.T) {
	needs := func(key, value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{key: value} }
	}
	tainted := func(p *karpv1.NodePool) {
		p.Spec.Template.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
	}
	const paused = "NodePool a launches no Nodes: ClusterPaused: spec.paused of the Cluster is true"
	for name, tc := range map[string]struct {
		pod   *corev1.Pod
		pools []client.Object
		want  []string
		again time.Duration
	}{
		"no NodePool":                     {pod: pod()},
		"its NodePool is ready":           {pod: pod(), pools: []client.Object{pool("a", "")}},
		"its NodePool is not ready":       {pod: pod(), pools: []client.Object{pool("a", "ClusterPaused")}, want: []string{paused}, again: 15 * time.Minute},
		"none of its NodePools is ready":  {pod: pod(), pools: []client.Object{pool("a", "ClusterPaused"), pool("b", "ClusterPaused")}, want: []string{paused + "; NodePool b launches no Nodes: ClusterPaused: spec.paused of the Cluster is true"}, again: 15 * time.Minute},
		"another NodePool is ready":       {pod: pod(), pools: []client.Object{pool("a", "ClusterPaused"), pool("b", "")}},
		"it cannot use the other one":     {pod: pod(needs(karpv1.NodePoolLabelKey, "a")), pools: []client.Object{pool("a", "ClusterPaused"), pool("b", "")}, want: []string{paused}, again: 15 * time.Minute},
		"it cannot use the one":           {pod: pod(needs(karpv1.NodePoolLabelKey, "b")), pools: []client.Object{pool("a", "ClusterPaused")}},
		"it does not tolerate the taint":  {pod: pod(), pools: []client.Object{pool("a", "ClusterPaused", tainted)}},
		"core has not examined it":        {pod: pod(), pools: []client.Object{pool("a", v1alpha1.ReasonNodeClassReadinessUnknown)}, again: time.Minute},
		"the NodePool is another's":       {pod: pod(), pools: []client.Object{pool("a", "ClusterPaused", func(p *karpv1.NodePool) { p.Spec.Template.Spec.NodeClassRef.Group = "example.com" })}},
		"the NodePool is static":          {pod: pod(), pools: []client.Object{pool("a", "ClusterPaused", func(p *karpv1.NodePool) { p.Spec.Replicas = new(int64(1)) })}},
		"the Pod has a Node":              {pod: pod(func(p *corev1.Pod) { p.Spec.NodeName = "n" }), pools: []client.Object{pool("a", "ClusterPaused")}},
		"kube-scheduler has not tried it": {pod: pod(func(p *corev1.Pod) { p.Status.Conditions = nil }), pools: []client.Object{pool("a", "ClusterPaused")}},
		"the NodePool is not valid": {pod: pod(), again: 15 * time.Minute, want: []string{"NodePool a launches no Nodes: NodePoolValidationFailed: wrong"}, pools: []client.Object{pool("a", "", func(p *karpv1.NodePool) {
			p.StatusConditions().SetFalse(karpv1.ConditionTypeValidationSucceeded, "NodePoolValidationFailed", "wrong")
		})}},
	} {
		t.Run(name, func(t *testing.T) {
			told := &published{}
			r := NewReconciler(fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(append(tc.pools, tc.pod)...).Build(), told)
			result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(tc.pod)})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range *told {
				if e.Reason != v1alpha1.ReasonNodePoolNotReady || e.Type != corev1.EventTypeWarning || e.DedupeTimeout != repeatAfter {
					t.Errorf("got the event %+v", e)
				}
				got = append(got, e.Message)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("wrong events (-want +got):\n%s", diff)
			}
			if result.RequeueAfter != tc.again {
				t.Errorf("again in %s, want %s", result.RequeueAfter, tc.again)
			}
		})
	}
}

// Only what can lead to an event causes a reconcile.
func TestEvents(t *testing.T) {
	scheduled := func(p *corev1.Pod) { p.Status.Conditions = nil }
	begins, other := beginsToWait(), otherProblem()
	for name, tc := range map[string]struct{ got, want bool }{
		"a new Pod that waits":              {begins.Create(event.CreateEvent{Object: pod()}), true},
		"a new Pod":                         {begins.Create(event.CreateEvent{Object: pod(scheduled)}), false},
		"a Pod begins to wait":              {begins.Update(event.UpdateEvent{ObjectOld: pod(scheduled), ObjectNew: pod()}), true},
		"a Pod waits as before":             {begins.Update(event.UpdateEvent{ObjectOld: pod(), ObjectNew: pod()}), false},
		"a Pod waits no longer":             {begins.Update(event.UpdateEvent{ObjectOld: pod(), ObjectNew: pod(scheduled)}), false},
		"a Pod is deleted":                  {begins.Delete(event.DeleteEvent{Object: pod()}), false},
		"a NodePool is not ready":           {other.Update(event.UpdateEvent{ObjectOld: pool("a", ""), ObjectNew: pool("a", "ClusterPaused")}), true},
		"a NodePool is not ready as before": {other.Update(event.UpdateEvent{ObjectOld: pool("a", "ClusterPaused"), ObjectNew: pool("a", "ClusterPaused")}), false},
		"a NodePool becomes ready":          {other.Update(event.UpdateEvent{ObjectOld: pool("a", "ClusterPaused"), ObjectNew: pool("a", "")}), false},
		"a NodePool has another reason":     {other.Update(event.UpdateEvent{ObjectOld: pool("a", "ClusterPaused"), ObjectNew: pool("a", "ClusterDeleting")}), true},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: got %t, want %t", name, tc.got, tc.want)
		}
	}
}

// A NodePool with another reason enqueues the Pods that wait, and no others.
func TestWaiting(t *testing.T) {
	bound := pod(func(p *corev1.Pod) { p.Name, p.Spec.NodeName = "bound", "n" })
	untried := pod(func(p *corev1.Pod) { p.Name, p.Status.Conditions = "untried", nil })
	c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(pod(), bound, untried).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).Build()
	got := NewReconciler(c, nil).waiting(t.Context(), pool("a", "ClusterPaused"))
	if diff := cmp.Diff([]reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(pod())}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
