// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/connection"
)

// A template is reconciled again when its status changes without an event, and not before.
func TestReconciledAgain(t *testing.T) {
	unavailable := func(until time.Duration) func(*v1alpha1.KarpenterMachineTemplate) {
		return func(t *v1alpha1.KarpenterMachineTemplate) {
			t.Status.UnavailableOfferings = append(t.Status.UnavailableOfferings, v1alpha1.UnavailableOffering{
				InstanceType: "m5", Zone: "a", CapacityType: "on-demand", Reason: "LaunchTimeout", Failures: 1, Until: metav1.NewTime(began.Add(until)),
			})
		}
	}
	other := func(t *v1alpha1.KarpenterMachineTemplate) {
		unavailable(time.Hour)(t)
		t.Status.UnavailableOfferings[len(t.Status.UnavailableOfferings)-1].Zone = "b"
	}
	for name, tc := range map[string]struct {
		change      []func(*v1alpha1.KarpenterMachineTemplate)
		interrupted time.Duration
		want        time.Duration
	}{
		"nothing changes":                            {},
		"an offering can be chosen again":            {change: []func(*v1alpha1.KarpenterMachineTemplate){unavailable(3 * time.Minute)}, want: 3 * time.Minute},
		"the first of several":                       {change: []func(*v1alpha1.KarpenterMachineTemplate){other, unavailable(3 * time.Minute)}, want: 3 * time.Minute},
		"a failure no longer counts":                 {change: []func(*v1alpha1.KarpenterMachineTemplate){unavailable(-10 * time.Minute)}, want: 20 * time.Minute},
		"a failure that no longer counts":            {change: []func(*v1alpha1.KarpenterMachineTemplate){unavailable(-time.Hour)}},
		"an interruption can become an outage":       {interrupted: time.Second, want: outagePoll},
		"an interruption, and an offering before it": {interrupted: time.Second, change: []func(*v1alpha1.KarpenterMachineTemplate){unavailable(5 * time.Second)}, want: 5 * time.Second},
		"a mistake that only an edit corrects": {change: []func(*v1alpha1.KarpenterMachineTemplate){func(t *v1alpha1.KarpenterMachineTemplate) {
			t.Spec.CatalogRefs = []v1alpha1.CatalogReference{{Name: "missing"}}
		}}},
		"an outage can end": {interrupted: time.Minute, want: outagePoll},
	} {
		t.Run(name, func(t *testing.T) {
			template := newTemplate()
			for _, change := range tc.change {
				change(template)
			}
			c := newCell(template)
			if tc.interrupted > 0 {
				c.clusters.ToManagement = connection.New(connection.Management, "https://m", c.clock, c.clock)
				c.clusters.ToManagement.Filled()
				c.clock.SetTime(began.Add(-tc.interrupted))
				interrupt(t, c.clusters.ToManagement)
				c.clock.SetTime(began)
			}
			result, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "general"}})
			if err != nil || result.RequeueAfter != tc.want {
				t.Errorf("got %s and %v, want %s", result.RequeueAfter, err, tc.want)
			}
		})
	}
	if outagePoll > 30*time.Second {
		t.Errorf("the end of an outage is seen after %s, want at most 30 s", outagePoll)
	}
}
