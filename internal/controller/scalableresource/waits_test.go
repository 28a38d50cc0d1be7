// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// What a slow Machine waits for is written once for each message that matters, at most every 5 minutes, and again when the
// Node has registered. A launch as usual costs no write.
func TestReportWaits(t *testing.T) {
	reports := func(message string) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) {
			conditions.Set(m, metav1.Condition{Type: clusterv1.MachineInfrastructureReadyCondition, Status: metav1.ConditionFalse, Reason: "CreateFailed", Message: message})
		}
	}
	w := newWorld(launched("c"), machine("m", linkedTo("c"), reports("attempt 1: no such image")))
	r := w.newProcess()
	clock := clocktesting.NewFakePassiveClock(now)
	r.clock = clock
	version := w.claim(t, "c").ResourceVersion
	for _, step := range []struct {
		name   string
		at     time.Duration
		change func(*clusterv1.Machine)
		writes bool
		want   string // the message of the condition
	}{
		{name: "as usual", at: 2 * time.Minute},
		{name: "slow", at: 3 * time.Minute, writes: true, want: "Machine m has no provider ID: CreateFailed: attempt 1: no such image"},
		{name: "the next attempt", at: 4 * time.Minute, change: reports("attempt 2: no such image"), want: "Machine m has no provider ID: CreateFailed: attempt 1: no such image"},
		{name: "another message, too soon", at: 5 * time.Minute, change: reports("no such network"), want: "Machine m has no provider ID: CreateFailed: attempt 1: no such image"},
		{name: "another message", at: 8 * time.Minute, writes: true, want: "Machine m has no provider ID: CreateFailed: no such network"},
		{name: "nothing new", at: 9 * time.Minute, want: "Machine m has no provider ID: CreateFailed: no such network"},
	} {
		if step.change != nil {
			w.setMachine(t, "m", step.change)
		}
		clock.SetTime(now.Add(step.at))
		if err := reconcileOnce(t, r); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		claim := w.claim(t, "c")
		condition, got := claim.StatusConditions().Get(v1alpha1.ConditionMachineReady), ""
		if condition != nil {
			got = condition.Message
		}
		if got != step.want || (claim.ResourceVersion != version) != step.writes {
			t.Errorf("%s: got %q, written: %t, want %q, %t", step.name, got, claim.ResourceVersion != version, step.want, step.writes)
		}
		version = claim.ResourceVersion
	}

	claim := w.claim(t, "c")
	claim.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered)
	claim.Status.ProviderID = "real://m"
	if err := w.api.Status().Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	w.setMachine(t, "m", withID("real://m"))
	for range 2 {
		if err := reconcileOnce(t, r); err != nil {
			t.Fatal(err)
		}
	}
	if ready := w.claim(t, "c").StatusConditions().Get(v1alpha1.ConditionMachineReady); !ready.IsTrue() {
		t.Errorf("got the condition %+v after the Node has registered", ready)
	}
}
