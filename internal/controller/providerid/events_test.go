// SPDX-License-Identifier: Apache-2.0

package providerid

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/event"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// An update of a Machine matters if another claim can get its ID, or its claim another ID.
func TestMachineChanged(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*clusterv1.Machine)
		want   bool
	}{
		"nothing":             {change: func(*clusterv1.Machine) {}},
		"its provider ID":     {change: func(m *clusterv1.Machine) { m.Spec.ProviderID = "real://m" }, want: true},
		"its link":            {change: func(m *clusterv1.Machine) { m.Labels[v1alpha1.NodeClaimUIDLabel] = "d" }, want: true},
		"it loses its link":   {change: func(m *clusterv1.Machine) { m.Labels = nil }, want: true},
		"it is being deleted": {change: func(m *clusterv1.Machine) { m.DeletionTimestamp = new(metav1.NewTime(time.Unix(1, 0))) }, want: true},
		"it is marked": {change: func(m *clusterv1.Machine) {
			m.Annotations = map[string]string{v1alpha1.MarkedForDeletionAtAnnotation: "2026-01-01T00:00:00Z"}
		}, want: true},
		"its Node":               {change: func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "n" }},
		"a label of other users": {change: func(m *clusterv1.Machine) { m.Labels["team"] = "a" }},
	} {
		t.Run(name, func(t *testing.T) {
			before := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m", Labels: map[string]string{v1alpha1.NodeClaimUIDLabel: "c"}}}
			after := before.DeepCopy()
			tc.change(after)
			if got := machineChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
			if got := otherMachine(after, before); got != tc.want {
				t.Errorf("the other way round: got %t, want %t", got, tc.want)
			}
		})
	}
	if machineChanged().Update(event.UpdateEvent{ObjectOld: &karpv1.NodeClaim{}, ObjectNew: &karpv1.NodeClaim{}}) {
		t.Error("the update of another kind passes")
	}
}

// An update of a claim matters if core has launched it, or something has written another ID.
func TestClaimChanged(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*karpv1.NodeClaim)
		want   bool
	}{
		"nothing":             {change: func(*karpv1.NodeClaim) {}},
		"it is launched":      {change: func(c *karpv1.NodeClaim) { c.StatusConditions().SetTrue(karpv1.ConditionTypeLaunched) }, want: true},
		"its ID":              {change: func(c *karpv1.NodeClaim) { c.Status.ProviderID = "real://m" }, want: true},
		"it cannot launch":    {change: func(c *karpv1.NodeClaim) { c.StatusConditions().SetFalse(karpv1.ConditionTypeLaunched, "No", "no") }},
		"it is registered":    {change: func(c *karpv1.NodeClaim) { c.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered) }},
		"it has other labels": {change: func(c *karpv1.NodeClaim) { c.Labels = map[string]string{"team": "a"} }},
	} {
		t.Run(name, func(t *testing.T) {
			before := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
			after := before.DeepCopy()
			tc.change(after)
			if got := claimChanged(before, after); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
