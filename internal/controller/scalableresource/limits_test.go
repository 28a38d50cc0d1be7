// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"strings"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/providerid"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
)

// Nothing replaces a claim without a NodePool. So at a limit it waits without a Machine, and gets
// one as soon as an older claim is deleted. The wait is no failure of its offering, and does not
// hide a failure that follows.
func TestAClaimWithoutANodePoolWaitsForALimit(t *testing.T) {
	because := func(reason string) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) {
			conditions.Set(m, metav1.Condition{Type: clusterv1.MachineInfrastructureReadyCondition, Status: metav1.ConditionFalse, Reason: reason, Message: "not yet"})
		}
	}
	ofTemplate := func(t *testing.T, w *testCluster) {
		w.limit(t, func(t *v1alpha1.KarpenterMachineTemplate) { t.Spec.MaxMachines = new(int32(1)) })
	}
	ofOffering := func(t *testing.T, w *testCluster) {
		listed := &v1alpha1.InstanceTypeCatalog{}
		if err := w.api.Get(t.Context(), types.NamespacedName{Name: newCatalog().Name}, listed); err != nil {
			t.Fatal(err)
		}
		for i := range listed.Spec.InstanceTypes {
			listed.Spec.InstanceTypes[i].Offerings[0].MaxMachines = new(int32(1))
		}
		listed.Generation++
		if err := w.api.Update(t.Context(), listed); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		limit   func(*testing.T, *testCluster)
		machine func(*clusterv1.Machine) // how the Machine that it gets changes
		marks   int
		want    metav1.ConditionStatus
	}{
		"of the template, and then gets its Machine": {limit: ofTemplate, machine: withID("real://second"), want: metav1.ConditionTrue},
		"of its offering, and then gets its Machine": {limit: ofOffering, machine: withID("real://second"), want: metav1.ConditionTrue},
		"of the template, and its Machine fails":     {limit: ofTemplate, machine: because("InsufficientInstanceCapacity"), marks: 1, want: metav1.ConditionUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			older := launched("older", func(c *karpv1.NodeClaim) { c.CreationTimestamp = metav1.NewTime(now.Add(-2 * time.Minute)) })
			w := newWorld(older, launched("alone", func(c *karpv1.NodeClaim) { delete(c.Labels, karpv1.NodePoolLabelKey) }), machine("first", because("NotReady")), machine("second", because("NotReady")))
			tc.limit(t, w)
			r := w.newProcess()
			reconcileAll := func() {
				t.Helper()
				for range 3 { // each step depends on what the previous one has written
					if err := reconcileOnce(t, r); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := providerid.NewReconciler(r.clusters, silent{}).Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "alone"}}); err != nil {
					t.Fatal(err)
				}
			}
			condition := func() status.Condition {
				t.Helper()
				return lo.FromPtr(w.claim(t, "alone").StatusConditions().Get(v1alpha1.ConditionMachineAvailable))
			}
			expectLinks := func(first, second types.UID) {
				t.Helper()
				if a, b := lifecycle.ClaimUID(w.machine(t, "first")), lifecycle.ClaimUID(w.machine(t, "second")); a != first || b != second {
					t.Errorf("the Machines serve %q and %q, want %q and %q", a, b, first, second)
				}
			}

			reconcileAll()
			expectLinks("older", "")
			if got := condition(); !got.IsFalse() || got.Reason != string(planner.LimitReached) || !strings.Contains(got.Message, "maxMachines") {
				t.Errorf("got the condition %+v", got)
			}
			if claim := w.claim(t, "alone"); !claim.DeletionTimestamp.IsZero() || len(w.marks(t)) > 0 {
				t.Errorf("the claim is deleted: %v, marks: %v", claim.DeletionTimestamp, w.marks(t))
			}

			w.remove(t, w.claim(t, "older"))
			reconcileAll()
			expectLinks("", "alone")
			w.setMachine(t, "second", tc.machine)
			reconcileAll()
			if got := condition(); got.Status != tc.want {
				t.Errorf("got the condition %+v, want %s", got, tc.want)
			}
			if got := w.marks(t); len(got) != tc.marks {
				t.Errorf("got the marks %+v, want %d", got, tc.marks)
			}
		})
	}
}

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
