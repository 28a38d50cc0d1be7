// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// joined returns a testCluster whose Node is kept Ready by the provider.
func joined(t *testing.T) *testCluster {
	t.Helper()
	w := newWorld(t, cluster(), ownerMachine(), simulatedMachine())
	w.nodeReady = true
	w.settle()
	w.settleAfter(time.Hour)
	if got := readyStatus(w.node()); got != corev1.ConditionTrue {
		t.Fatalf("Ready = %q, want True from the first write", got)
	}
	return w
}

// changeNode changes the Node, as another client does.
func (w *testCluster) changeNode(change func(*corev1.Node)) {
	w.t.Helper()
	node := w.node()
	change(node)
	status := node.Status.DeepCopy()
	if err := w.workload.Update(w.ctx, node); err != nil {
		w.t.Fatal(err)
	}
	node.Status = *status
	if err := w.workload.Status().Update(w.ctx, node); err != nil {
		w.t.Fatal(err)
	}
}

func TestNodeIsKeptReady(t *testing.T) {
	w := joined(t)
	custom := corev1.NodeCondition{Type: "DiskBroken", Status: corev1.ConditionFalse}
	w.changeNode(func(node *corev1.Node) {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule})
		node.Status.Conditions = []corev1.NodeCondition{custom, {Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
	})
	if next := w.settle(); next != heartbeatInterval {
		t.Errorf("next reconcile in %v, want %v", next, heartbeatInterval)
	}
	node := w.node()
	if got := readyStatus(node); got != corev1.ConditionTrue {
		t.Errorf("Ready = %q, want True again", got)
	}
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeNotReady {
			t.Error("the taint of a Node that is not ready was not removed")
		}
	}
	if len(node.Spec.Taints) != 2 {
		t.Errorf("taints = %v, want the two of a new Node", node.Spec.Taints)
	}
	var kept []corev1.NodeCondition
	for _, condition := range node.Status.Conditions {
		if condition.Type == custom.Type {
			kept = append(kept, condition)
		}
	}
	if diff := cmp.Diff([]corev1.NodeCondition{custom}, kept); diff != "" {
		t.Errorf("another controller's condition (-want +got):\n%s", diff)
	}
}

func TestNodeThatSomebodyTookOverIsLeftAlone(t *testing.T) {
	w := joined(t)
	w.changeNode(func(node *corev1.Node) {
		delete(node.Annotations, KwokAnnotation)
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
	})
	settled := w.writes
	w.settleAfter(time.Hour)
	if got := readyStatus(w.node()); got != corev1.ConditionFalse || w.writes != settled {
		t.Errorf("Ready = %q after %d writes, want False and none", got, w.writes-settled)
	}
}

func TestDeadNodeIsUnknown(t *testing.T) {
	w := joined(t)
	w.deleteMachine()
	w.settle()
	for _, condition := range w.node().Status.Conditions {
		if condition.Status != corev1.ConditionUnknown || condition.Reason != "NodeStatusUnknown" {
			t.Errorf("%s = %s, %s, want Unknown", condition.Type, condition.Status, condition.Reason)
		}
	}
	if w.lease() != nil {
		t.Error("without kwok nothing reads a lease")
	}
}

func TestStopHeartbeatWritesOnce(t *testing.T) {
	w := newWorld(t)
	if err := w.workload.Create(w.ctx, kwokLease()); err != nil {
		t.Fatal(err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: machineName}}
	for range 2 {
		if err := StopHeartbeat(w.ctx, w.counted(w.workload), node, microTime(epoch)); err != nil {
			t.Fatal(err)
		}
	}
	if w.writes != 1 {
		t.Errorf("%d writes, want 1", w.writes)
	}
}

func TestStopHeartbeatTriesAgainAfterARenewal(t *testing.T) {
	w := newWorld(t, cluster(), ownerMachine(), simulatedMachine())
	w.settle()
	w.settleAfter(time.Hour)
	if err := w.workload.Create(w.ctx, kwokLease()); err != nil {
		t.Fatal(err)
	}
	renewed := microTime(epoch.Add(time.Hour))
	renewals := 0
	kwok := w.workload
	w.workload = interceptor.NewClient(kwok, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if err := c.Get(ctx, key, obj, opts...); err != nil {
				return err
			}
			if lease, ok := obj.(*coordinationv1.Lease); ok && renewals == 0 {
				renewals++
				lease = lease.DeepCopy()
				lease.Spec.RenewTime = &renewed
				return c.Update(ctx, lease)
			}
			return nil
		},
	})
	w.deleteMachine()
	for range 2 { // One reconcile records the termination, the other one conflicts with the renewal.
		if _, err := w.reconcileOnce(); err != nil {
			t.Fatal(err)
		}
	}
	if got := *w.lease().Spec.HolderIdentity; got != "kwok" {
		t.Errorf("holder = %q: a renewal was overwritten", got)
	}
	w.settle()
	if spec := w.lease().Spec; *spec.HolderIdentity != leaseHolder || !spec.RenewTime.Equal(&renewed) {
		t.Errorf("lease = %v, want it taken with its last renewal", spec)
	}
}
