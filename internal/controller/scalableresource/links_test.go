// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
)

var machinesResource = schema.GroupResource{Group: clusterv1.GroupVersion.Group, Resource: "machines"}

// If the link of one claim cannot be written, for whatever reason, other claims are still handled.
func TestOneLinkThatIsNotWrittenHoldsUpNoOtherClaim(t *testing.T) {
	for name, tc := range map[string]struct {
		answer    error
		wantError bool
	}{
		"refused by a webhook": {answer: apierrors.NewForbidden(machinesResource, "spare", errors.New("denied the request")), wantError: true},
		"no answer":            {answer: apierrors.NewTimeoutError("no answer", 0), wantError: true},
		"a conflict":           {answer: apierrors.NewConflict(machinesResource, "spare", errors.New("the object has been modified"))},
	} {
		t.Run(name, func(t *testing.T) {
			registered := func(c *karpv1.NodeClaim) {
				c.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered)
				c.Status.ProviderID = "real://lost"
			}
			w := newWorld(
				launched("refused"), machine("spare"),
				launched("other"), machine("spare-too"),
				launched("lost", registered), machine("lost", linkedTo("lost"), withID("real://lost"), func(m *clusterv1.Machine) { m.DeletionTimestamp = new(metav1.NewTime(now)) }),
				launched("failed"), machine("failed", linkedTo("failed"), func(m *clusterv1.Machine) {
					conditions.Set(m, metav1.Condition{Type: clusterv1.MachineInfrastructureReadyCondition, Status: metav1.ConditionFalse, Reason: "InsufficientInstanceCapacity", Message: "none left"})
				}),
			)
			refused := ""
			w.patch = func(machine string, do func() error) error {
				// It does not matter which of the two claims gets the Machine.
				if machine == "spare" {
					refused = machine
					return tc.answer
				}
				return do()
			}
			r := w.newProcess()
			if err := reconcileOnce(t, r); (err != nil) != tc.wantError {
				t.Errorf("got error %v, want one: %t", err, tc.wantError)
			}
			if refused == "" {
				t.Fatal("no link was refused")
			}
			if uid := lifecycle.ClaimUID(w.machine(t, "spare-too")); uid == "" {
				t.Error("the other waiting claim has no Machine")
			}
			if w.claim(t, "lost").DeletionTimestamp.IsZero() {
				t.Error("the claim whose Machine is being deleted is not deleted")
			}
			if marks := w.marks(t); len(marks) != 1 || marks[0].Reason != "InsufficientCapacity" {
				t.Errorf("the offering of the claim whose Machine has failed has the marks %v", marks)
			}
		})
	}
}

// If another writer has linked the Machine, a cache that lacks the link decides neither about that
// claim nor about the claim for which the Machine was planned.
func TestNothingIsConcludedFromALinkThatTheCacheLacks(t *testing.T) {
	w := newWorld(launched("waits"), machine("taken", withID("real://taken")),
		launched("younger", func(c *karpv1.NodeClaim) {
			c.CreationTimestamp = metav1.NewTime(now.Add(-time.Second))
			c.Status.ProviderID = "real://taken"
		}))
	before := w.machine(t, "taken")
	before.Spec.ProviderID = ""
	w.machines = []clusterv1.Machine{*before}
	w.setMachine(t, "taken", linkedTo("younger"))
	if err := reconcileOnce(t, w.newProcess()); err != nil {
		t.Fatal(err)
	}
	if id := w.claim(t, "waits").Status.ProviderID; id != planner.ProvisionalID("waits") {
		t.Errorf("the waiting claim has provider ID %s of another claim's Machine", id)
	}
	if id := w.claim(t, "younger").Status.ProviderID; id != "real://taken" {
		t.Errorf("the claim that has the Machine has provider ID %s, want real://taken", id)
	}
}

// A claim does not get a Machine that appears later and is first by name, if the claim was linked to
// another Machine and the cache lacks that link.
func TestNoSecondLinkFromACacheThatIsBehind(t *testing.T) {
	for name, tc := range map[string]struct {
		// answer of the API server to the first link, which it writes.
		answer error
	}{
		"answered":  {},
		"no answer": {answer: apierrors.NewTimeoutError("no answer", 0)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(launched("a"), machine("m2"))
			r := w.newProcess()
			stale := w.machine(t, "m2")
			w.patch = func(_ string, do func() error) error {
				if err := do(); err != nil {
					return err
				}
				return tc.answer
			}
			if err := reconcileOnce(t, r); !errors.Is(err, tc.answer) {
				t.Fatalf("got error %v, want %v", err, tc.answer)
			}
			w.patch = nil
			if uid := lifecycle.ClaimUID(w.machine(t, "m2")); uid != "a" {
				t.Fatalf("Machine m2 is linked to claim %q, want a", uid)
			}

			if err := w.api.Create(t.Context(), machine("m1")); err != nil {
				t.Fatal(err)
			}
			w.machines = []clusterv1.Machine{*w.machine(t, "m1"), *stale}
			if err := reconcileOnce(t, r); err != nil {
				t.Fatal(err)
			}
			if uid := lifecycle.ClaimUID(w.machine(t, "m1")); uid != "" {
				t.Errorf("Machine m1 is linked to claim %s, which has m2", uid)
			}

			w.machines = nil
			before := w.reads
			if err := reconcileOnce(t, r); err != nil {
				t.Fatal(err)
			}
			if uid := lifecycle.ClaimUID(w.machine(t, "m1")); uid != "" || w.reads != before {
				t.Errorf("with a cache that has caught up, Machine m1 is linked to claim %q, and the API server is read %d times", uid, w.reads-before)
			}
		})
	}
}

// A linked Machine that was deleted before the cache had its link is forgotten, and its claim gets
// another Machine.
func TestDeletedMachineIsForgotten(t *testing.T) {
	w := newWorld(launched("a"), machine("m1"))
	r := w.newProcess()
	w.machines = []clusterv1.Machine{*w.machine(t, "m1")}
	if err := reconcileOnce(t, r); err != nil {
		t.Fatal(err)
	}
	w.setMachine(t, "m1", func(m *clusterv1.Machine) { m.Finalizers = nil })
	if err := w.api.Delete(t.Context(), w.machine(t, "m1")); err != nil {
		t.Fatal(err)
	}
	if err := w.api.Create(t.Context(), machine("m2")); err != nil {
		t.Fatal(err)
	}
	w.machines = []clusterv1.Machine{*w.machine(t, "m2")}
	if err := reconcileOnce(t, r); err != nil {
		t.Fatal(err)
	}
	if uid := lifecycle.ClaimUID(w.machine(t, "m2")); uid != "a" {
		t.Errorf("Machine m2 is linked to claim %q, want a", uid)
	}
}

// A process that has just become the leader may have caches that lack the last writes of the
// previous leader, because a warm standby fills its caches in advance.
func TestNewLeaderKnowsTheLinksThatItsCacheLacks(t *testing.T) {
	old := func(c *karpv1.NodeClaim) {
		c.CreationTimestamp = metav1.NewTime(now.Add(-2 * v1alpha1.DefaultLaunchTimeout))
		conditions := c.GetConditions()
		for i := range conditions {
			conditions[i].LastTransitionTime = metav1.NewTime(c.CreationTimestamp.Time)
		}
		c.SetConditions(conditions)
	}
	for name, tc := range map[string]struct {
		// cached are the Machines that the cache has, as they were before m2 was linked.
		cached []string
	}{
		"the link":                           {cached: []string{"m1", "m2"}},
		"the Machine":                        {cached: []string{"m1"}},
		"the Machine, and there is no other": {cached: []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(launched("a", old), machine("m1"), machine("m2"))
			w.machines = []clusterv1.Machine{}
			for _, name := range tc.cached {
				w.machines = append(w.machines, *w.machine(t, name))
			}
			w.setMachine(t, "m2", func(m *clusterv1.Machine) { linkedTo("a")(m); withID("real://m2")(m) })
			r := w.newProcess()
			for range 2 {
				if err := reconcileOnce(t, r); err != nil {
					t.Fatal(err)
				}
			}
			if uid := lifecycle.ClaimUID(w.machine(t, "m1")); uid != "" {
				t.Errorf("Machine m1 is linked to claim %s, which has m2", uid)
			}
			if marks := w.marks(t); len(marks) > 0 || !w.claim(t, "a").DeletionTimestamp.IsZero() {
				t.Errorf("claim a has Machine m2, and counts as failed with the marks %v", marks)
			}
			// Once the cache has it, the API server is not read again.
			w.machines = nil
			for range 2 {
				w.reads = 0
				if err := reconcileOnce(t, r); err != nil {
					t.Fatal(err)
				}
			}
			if w.reads > 0 {
				t.Errorf("with a cache that has caught up, the API server is read %d times", w.reads)
			}
		})
	}
}

// A claim whose link is open stays as it is: the cached Machine may lack what the claim has from it.
func TestClaimOfAnOpenLinkStaysAsItIs(t *testing.T) {
	w := newWorld(launched("a", func(c *karpv1.NodeClaim) { c.Status.ProviderID = "real://m" }), machine("m"))
	r := w.newProcess()
	w.machines = []clusterv1.Machine{*w.machine(t, "m")}
	knowLinked(t, r)
	w.setMachine(t, "m", func(m *clusterv1.Machine) { linkedTo("a")(m); withID("real://m")(m) })
	w.patch = func(string, func() error) error { return apierrors.NewConflict(machinesResource, "m", nil) }
	if err := reconcileOnce(t, r); err != nil {
		t.Fatal(err)
	}
	if id := w.claim(t, "a").Status.ProviderID; id != "real://m" {
		t.Errorf("got the provider ID %s", id)
	}
}

// While the link of one claim cannot be written, others are linked, and neither its claim nor its Machine is linked a
// second time. Replicas count both.
func TestNoLinkWaitsForAnother(t *testing.T) {
	w := newWorld(launched("a"), machine("m1"))
	written := map[string]int{}
	silent := true
	w.patch = func(machine string, do func() error) error {
		if written[machine]++; machine == "m1" && silent {
			return apierrors.NewTimeoutError("no answer", 0)
		}
		return do()
	}
	r := w.newProcess()
	if err := reconcileOnce(t, r); err == nil {
		t.Fatal("the link of claim a has not failed")
	}
	for _, object := range []client.Object{launched("b"), machine("m2")} {
		if err := w.api.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	if err := reconcileOnce(t, r); err == nil {
		t.Fatal("the link of claim a has not failed")
	}
	if uid := lifecycle.ClaimUID(w.machine(t, "m2")); uid != "b" {
		t.Errorf("Machine m2 is linked to %q, want b", uid)
	}
	if open := r.links.Open(resourceName); len(open) != 1 || open[0].Claim.UID != "a" || open[0].Machine.UID != "m1" {
		t.Errorf("got the open links %v, want that of claim a", open)
	}
	silent = false
	if err := reconcileOnce(t, r); err != nil {
		t.Fatal(err)
	}
	if uid := lifecycle.ClaimUID(w.machine(t, "m1")); uid != "a" || len(r.links.Open(resourceName)) > 0 {
		t.Errorf("Machine m1 is linked to %q, want a", uid)
	}
	if written["m2"] != 1 {
		t.Errorf("got %v writes of Machines, want one of m2", written)
	}
}
