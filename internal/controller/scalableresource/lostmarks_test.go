// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/cloudprovider"
)

// A backup does not restore the status of a template. Without its marks, an offering that has failed is tried one more
// time, and its next mark is as short as a first one. No other claim is affected. See docs/design/failures.md.
func TestLostMarks(t *testing.T) {
	w := newWorld(
		launched("a"), machine("first", linkedTo("a"), infrastructure("InsufficientInstanceCapacity")),
		launched("b"), machine("second", linkedTo("b")),
	)
	// chosen returns the instance type that the next claim gets.
	chosen := func() (string, error) {
		next := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "next", UID: "next"}, Spec: karpv1.NodeClaimSpec{
			NodeClassRef: &karpv1.NodeClassReference{Group: v1alpha1.Group, Kind: v1alpha1.Kind, Name: "general"},
		}}
		r := w.newProcess()
		created, err := cloudprovider.New(r.clusters, r.catalog, clocktesting.NewFakeClock(now)).Create(t.Context(), next)
		if err != nil {
			return "", err
		}
		return created.Labels[corev1.LabelInstanceTypeStable], nil
	}
	expect := func(when, want string) {
		t.Helper()
		if got, err := chosen(); err != nil || got != want {
			t.Errorf("%s: got %q and %v, want %q", when, got, err, want)
		}
	}
	expect("before the failure", "small")
	if err := reconcileOnce(t, w.newProcess()); err != nil {
		t.Fatal(err)
	}
	expect("after the failure", "large")
	w.setTemplate(t, func(template *v1alpha1.KarpenterMachineTemplate) {
		template.Status.UnavailableOfferings[0].Failures = 3
	})

	w.setTemplate(t, func(template *v1alpha1.KarpenterMachineTemplate) {
		template.Status = v1alpha1.KarpenterMachineTemplateStatus{}
	})
	if got, err := chosen(); err == nil {
		t.Errorf("without a status: got %q, want that nothing is launched", got)
	}
	w.setTemplate(t, func(template *v1alpha1.KarpenterMachineTemplate) { template.Status = newTemplate().Status })
	expect("without marks", "small")

	for range 3 { // each step depends on what the previous one has written
		if err := reconcileOnce(t, w.newProcess()); err != nil {
			t.Fatal(err)
		}
	}
	marks := w.marks(t)
	if len(marks) != 1 || marks[0].Failures != 1 || !marks[0].Until.Time.Equal(now.Add(3*time.Minute)) {
		t.Errorf("got the marks %+v, want a first one", marks)
	}
	expect("after the next failure", "large")
	if w.claim(t, "a").DeletionTimestamp.IsZero() {
		t.Error("the claim of the failed Machine is not replaced")
	}
	if !w.claim(t, "b").DeletionTimestamp.IsZero() || !w.machine(t, "second").DeletionTimestamp.IsZero() {
		t.Error("another claim or its Machine is being deleted")
	}
}
