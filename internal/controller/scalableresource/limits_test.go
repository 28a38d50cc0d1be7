// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Karpenter replaces a claim of a NodePool that is above a limit. Its offering has not failed.
func TestAClaimOfANodePoolEndsAtALimit(t *testing.T) {
	older := launched("older", func(c *karpv1.NodeClaim) { c.CreationTimestamp = metav1.NewTime(now.Add(-2 * time.Minute)) })
	w := newWorld(older, launched("c"))
	w.limit(t, func(t *v1alpha1.KarpenterMachineTemplate) { t.Spec.MaxMachines = new(int32(1)) })
	if err := reconcileOnce(t, w.newProcess()); err != nil {
		t.Fatal(err)
	}
	if w.claim(t, "c").DeletionTimestamp.IsZero() || !w.claim(t, "older").DeletionTimestamp.IsZero() {
		t.Error("not the younger claim is deleted")
	}
	if marks := w.marks(t); len(marks) > 0 {
		t.Errorf("got the marks %+v, want none", marks)
	}
}

// limit changes the limits of the template.
func (w *testCluster) limit(t *testing.T, change func(*v1alpha1.KarpenterMachineTemplate)) {
	t.Helper()
	template := &v1alpha1.KarpenterMachineTemplate{}
	if err := w.api.Get(t.Context(), types.NamespacedName{Name: "general"}, template); err != nil {
		t.Fatal(err)
	}
	change(template)
	if err := w.api.Update(t.Context(), template); err != nil {
		t.Fatal(err)
	}
}

// remove deletes a claim, with its finalizers.
func (w *testCluster) remove(t *testing.T, claim *karpv1.NodeClaim) {
	t.Helper()
	claim.Finalizers = nil
	if err := w.api.Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	if err := w.api.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
}
