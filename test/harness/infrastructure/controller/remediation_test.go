// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

// A restart gives the Node another boot, once, and heals it if the template says so.
func TestRemediation(t *testing.T) {
	for effect, want := range map[infrav1.RemediationEffect]struct{ boots, healthy bool }{
		"":                          {boots: true, healthy: true},
		infrav1.RemediationHeals:    {boots: true, healthy: true},
		infrav1.RemediationRestarts: {boots: true},
		infrav1.RemediationFails:    {},
	} {
		t.Run(string(effect), func(t *testing.T) {
			machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m", UID: "m"}}
			machine.Status.NodeRef.Name = "n"
			remediation := &infrav1.SimulatedRemediation{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m", UID: "r", OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: "m", UID: "m"}}},
				Spec:       infrav1.SimulatedRemediationSpec{Effect: effect},
			}
			w := newWorld(t, machine, remediation)
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
			if err := w.workload.Create(w.ctx, node); err != nil {
				t.Fatal(err)
			}
			node.Status.NodeInfo.BootID = "before"
			node.Status.Conditions = []corev1.NodeCondition{{Type: "KernelDeadlock", Status: corev1.ConditionTrue}, {Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
			if err := w.workload.Status().Update(w.ctx, node); err != nil {
				t.Fatal(err)
			}
			r := &remediationReconciler{Client: w.management, workload: w.workload, clock: w.clock}
			for range 2 {
				if _, err := r.Reconcile(w.ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(remediation)}); err != nil {
					t.Fatal(err)
				}
				if err := w.workload.Get(w.ctx, client.ObjectKeyFromObject(node), node); err != nil {
					t.Fatal(err)
				}
				if boots := node.Status.NodeInfo.BootID == "r"; boots != want.boots {
					t.Errorf("the boot is %s", node.Status.NodeInfo.BootID)
				}
				deadlock := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == "KernelDeadlock" })
				if healthy := readyStatus(node) == corev1.ConditionTrue && !deadlock && node.Annotations[KwokAnnotation] == KwokAnnotationValue; healthy != want.healthy {
					t.Errorf("got conditions %+v and annotations %v", node.Status.Conditions, node.Annotations)
				}
			}
			if err := w.management.Get(w.ctx, client.ObjectKeyFromObject(remediation), remediation); err != nil || remediation.Status.Phase != phaseDone {
				t.Errorf("got phase %q and %v", remediation.Status.Phase, err)
			}
		})
	}
}

// Until its duration has passed, the machine has not restarted.
func TestRemediationTakesTime(t *testing.T) {
	created := epoch.Truncate(time.Second) // As an API server stores it.
	remediation := &infrav1.SimulatedRemediation{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m", CreationTimestamp: metav1.NewTime(created)},
		Spec:       infrav1.SimulatedRemediationSpec{Duration: metav1.Duration{Duration: 10 * time.Second}},
	}
	w := newWorld(t, remediation)
	r := &remediationReconciler{Client: w.management, workload: w.workload, clock: w.clock}
	for _, step := range []struct {
		at    time.Time
		after time.Duration
		phase string
	}{{at: created.Add(4 * time.Second), after: 6 * time.Second}, {at: created.Add(10 * time.Second), phase: phaseDone}} {
		w.clock.SetTime(step.at)
		result, err := r.Reconcile(w.ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(remediation)})
		if err != nil || result.RequeueAfter != step.after {
			t.Errorf("got %+v and %v, want another reconcile after %s", result, err, step.after)
		}
		if err := w.management.Get(w.ctx, client.ObjectKeyFromObject(remediation), remediation); err != nil || remediation.Status.Phase != step.phase {
			t.Errorf("got phase %q and %v, want %q", remediation.Status.Phase, err, step.phase)
		}
	}
}
