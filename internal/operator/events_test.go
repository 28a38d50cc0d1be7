// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"testing"

	"github.com/awslabs/operatorpkg/status"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// recording is a manager that only has an event recorder.
type recording struct {
	manager.Manager
	recorder *record.FakeRecorder
}

func (m recording) GetEventRecorderFor(string) record.EventRecorder { return m.recorder }

// Of core's status controllers, those of NodeClaims and Nodes publish nothing, and those of NodePools publish as before.
func TestQuietStatusControllers(t *testing.T) {
	const finalizer = "karpenter.sh/termination"
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", Finalizers: []string{finalizer}}}
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "p", Finalizers: []string{finalizer}}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Finalizers: []string{finalizer}}}
	registered := func(o client.Object) {
		o.(*karpv1.NodeClaim).StatusConditions().SetTrue(karpv1.ConditionTypeRegistered)
	}
	healthy := func(o client.Object) {
		o.(*karpv1.NodePool).StatusConditions().SetTrue(karpv1.ConditionTypeValidationSucceeded)
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
	ready := func(o client.Object) { o.(*corev1.Node).Status.Conditions[0].Status = corev1.ConditionTrue }
	for name, tc := range map[string]struct {
		object     client.Object
		transition func(client.Object)
		controller func(client.Client, record.EventRecorder) reconcile.Reconciler
		want       int
	}{
		"a NodeClaim": {claim, registered, func(c client.Client, r record.EventRecorder) reconcile.Reconciler {
			return status.NewController[*karpv1.NodeClaim](c, r)
		}, 0},
		"a Node": {node, ready, func(c client.Client, r record.EventRecorder) reconcile.Reconciler {
			return status.NewGenericObjectController[*corev1.Node](c, r)
		}, 0},
		"a NodePool": {pool, healthy, func(c client.Client, r record.EventRecorder) reconcile.Reconciler {
			return status.NewController[*karpv1.NodePool](c, r)
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			useRegistry(t)
			all, published := record.NewFakeRecorder(10), record.NewFakeRecorder(10)
			quiet := quietManager{recording{recorder: published}}.GetEventRecorderFor("karpenter")
			api := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(tc.object).WithStatusSubresource(tc.object).Build()
			controller := tc.controller(api, both{all, quiet})
			for _, change := range []func() error{
				func() error { return nil },
				func() error { tc.transition(tc.object); return api.Status().Update(t.Context(), tc.object) },
				func() error { tc.object.SetFinalizers(nil); return api.Update(t.Context(), tc.object) },
			} {
				if err := change(); err != nil {
					t.Fatal(err)
				}
				if _, err := controller.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(tc.object)}); err != nil {
					t.Fatal(err)
				}
			}
			if len(all.Events) != 2 {
				t.Errorf("core publishes %d events, want one of the condition and one of the finalizer: the rule may be outdated", len(all.Events))
			}
			if got := len(published.Events); got != tc.want {
				t.Errorf("got %d events, want %d", got, tc.want)
			}
		})
	}
}

// useRegistry lets the status controllers of a test register metrics that are registered.
func useRegistry(t *testing.T) {
	t.Helper()
	before := metrics.Registry
	metrics.Registry = prometheus.NewRegistry()
	t.Cleanup(func() { metrics.Registry = before })
}

// both publishes each event with two recorders.
type both struct {
	record.EventRecorder
	quiet record.EventRecorder
}

func (b both) Event(object runtime.Object, kind, reason, message string) {
	b.EventRecorder.Event(object, kind, reason, message)
	b.quiet.Event(object, kind, reason, message)
}

// Other events of NodeClaims and Nodes are published.
func TestQuietRecorderKeepsOthers(t *testing.T) {
	claim, node := &karpv1.NodeClaim{}, &corev1.Node{}
	recorder := record.NewFakeRecorder(10)
	quiet := quietManager{recording{recorder: recorder}}.GetEventRecorderFor("karpenter")
	quiet.Event(claim, corev1.EventTypeWarning, "InsufficientCapacity", "none left")
	quiet.Event(claim, corev1.EventTypeWarning, "InsufficientCapacity", "none left")
	quiet.Event(claim, corev1.EventTypeWarning, "Finalized", "a warning")
	quiet.Event(node, corev1.EventTypeNormal, "DisruptionTerminating", "Disrupting Node: Empty/Delete")
	quiet.Event(&corev1.Pod{}, corev1.EventTypeNormal, "Nominated", "Pod should schedule on: nodeclaim/c")
	quiet.Event(node, corev1.EventTypeNormal, "Finalized", "Finalized x")
	quiet.Event(claim, corev1.EventTypeNormal, v1alpha1.ReasonMachineLinked, "Machine m serves this NodeClaim")
	quiet.Event(claim, corev1.EventTypeNormal, v1alpha1.ReasonProviderIDSet, "Machine m has provider ID x")
	quiet.Eventf(node, corev1.EventTypeNormal, "Any", "%d", 1)
	var got []string
	for len(recorder.Events) > 0 {
		got = append(got, <-recorder.Events)
	}
	want := []string{
		"Warning InsufficientCapacity none left", "Warning InsufficientCapacity none left", "Warning Finalized a warning", "Normal DisruptionTerminating Disrupting Node: Empty/Delete",
		"Normal Nominated Pod should schedule on: nodeclaim/c", "Normal MachineLinked Machine m serves this NodeClaim", "Normal Any 1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Why a Node is not disrupted is published when it changes, and again before API servers forget it. What only the NodePool's
// policy says is not published.
func TestQuietRecorderRepeatsNothing(t *testing.T) {
	recorder := record.NewFakeRecorder(20)
	quiet := quietManager{recording{recorder: recorder}}.GetEventRecorderFor("karpenter").(quietRecorder)
	node, other := &corev1.Node{ObjectMeta: metav1.ObjectMeta{UID: "1"}}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{UID: "2"}}
	publish := func(node *corev1.Node, reason, message string) {
		quiet.Event(node, corev1.EventTypeNormal, reason, message)
	}
	for range 3 {
		publish(node, events.DisruptionBlocked, "PDB prevents pod evictions")
		publish(node, events.Unconsolidatable, "Can't replace with a cheaper node")
		publish(other, events.DisruptionBlocked, "PDB prevents pod evictions")
		publish(node, events.Unconsolidatable, `NodePool "default" has consolidation policy WhenEmpty, but node is not empty`)
		publish(node, events.Unconsolidatable, `NodePool "default" has consolidation disabled`)
	}
	publish(node, events.DisruptionBlocked, "Node is nominated for a pending pod")
	publish(node, events.DisruptionBlocked, "PDB prevents pod evictions")
	quiet.published.Flush() // as after repeatAfter
	publish(node, events.DisruptionBlocked, "PDB prevents pod evictions")
	var got []string
	for len(recorder.Events) > 0 {
		got = append(got, <-recorder.Events)
	}
	want := []string{
		"Normal DisruptionBlocked PDB prevents pod evictions", "Normal Unconsolidatable Can't replace with a cheaper node",
		"Normal DisruptionBlocked PDB prevents pod evictions", // the other Node
		"Normal DisruptionBlocked Node is nominated for a pending pod", "Normal DisruptionBlocked PDB prevents pod evictions",
		"Normal DisruptionBlocked PDB prevents pod evictions",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
