// SPDX-License-Identifier: Apache-2.0

package partition

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

func testPod(node string, leaving bool) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	if leaving {
		now := metav1.Now()
		pod.DeletionTimestamp = &now
	}
	return pod
}

func testClaim(node string, leaving bool) *karpv1.NodeClaim {
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "1"}, Status: karpv1.NodeClaimStatus{NodeName: node}}
	if node != "" {
		claim.StatusConditions().SetTrue(karpv1.ConditionTypeInitialized)
	}
	if leaving {
		now := metav1.Now()
		claim.DeletionTimestamp = &now
	}
	return claim
}

func TestObserverLost(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	for name, tc := range map[string]struct {
		events func(*observer)
		want   []string
	}{
		"an empty claim is deleted": {
			events: func(w *observer) { w.see(testClaim("n", true)); w.seeRemoval(node); w.seeRemoval(testClaim("n", true)) },
		},
		"the Pod leaves before": {
			events: func(w *observer) { w.see(testPod("n", false)); w.see(testPod("n", true)); w.see(testClaim("n", true)) },
		},
		"the Pod is removed before": {
			events: func(w *observer) {
				w.see(testPod("n", false))
				w.seeRemoval(testPod("n", false))
				w.see(testClaim("n", true))
			},
		},
		"the Pod runs on another Node": {
			events: func(w *observer) { w.see(testPod("m", false)); w.see(testClaim("n", true)); w.seeRemoval(node) },
		},
		"a claim without a Node is deleted": {
			events: func(w *observer) { w.see(testPod("n", false)); w.see(testClaim("", true)) },
		},
		"a claim is deleted while the Pod runs": {
			events: func(w *observer) {
				w.see(testPod("n", false))
				w.see(testClaim("n", false))
				w.see(testClaim("n", true))
				w.seeRemoval(node)
			},
			want: []string{"NodeClaim c was removed while Pod p ran on Node n"},
		},
		"a claim is removed at once": {
			events: func(w *observer) {
				w.see(testPod("n", false))
				w.see(testClaim("n", false))
				w.seeRemoval(testClaim("n", false))
			},
			want: []string{"NodeClaim c was removed while Pod p ran on Node n"},
		},
		"a Node is removed while the Pod runs": {
			events: func(w *observer) { w.see(testPod("n", false)); w.see(testClaim("n", false)); w.seeRemoval(node) },
			want:   []string{"Node n was removed while Pod p ran on Node n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEmptyObserver()
			tc.events(w)
			if diff := cmp.Diff(tc.want, w.everLost()); diff != "" {
				t.Errorf("lost (-want +got):\n%s", diff)
			}
		})
	}
}

func TestObserverInFlight(t *testing.T) {
	w := newEmptyObserver()
	w.see(testClaim("", false))
	w.begin()
	w.see(testClaim("n", false))
	if got := w.end(); got != 1 {
		t.Errorf("%d claims in flight, want that which was launched at the beginning", got)
	}
	w.begin()
	if got := w.end(); got != 0 {
		t.Errorf("%d claims in flight, want none of those that run", got)
	}
	if ok, _, _ := w.awaits(deleting)(t.Context()); ok {
		t.Error("no claim is being deleted")
	}
	w.begin()
	w.see(testClaim("n", true))
	if got := w.end(); got != 1 {
		t.Errorf("%d claims in flight, want that which is deleted meanwhile", got)
	}
	if ok, _, _ := w.awaits(deleting)(t.Context()); !ok {
		t.Error("the claim is being deleted")
	}
}
