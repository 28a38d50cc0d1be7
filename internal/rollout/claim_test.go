// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

func TestObserve(t *testing.T) {
	type claim = *karpv1.NodeClaim
	since := metav1.NewTime(began.Add(-5 * time.Minute))
	set := func(kind string, status metav1.ConditionStatus, reason, message string) func(claim) {
		return func(c claim) {
			conditions := c.StatusConditions()
			switch status {
			case metav1.ConditionTrue:
				conditions.SetTrueWithReason(kind, reason, message)
			case metav1.ConditionFalse:
				conditions.SetFalse(kind, reason, message)
			default:
				conditions.SetUnknownWithReason(kind, reason, message)
			}
			for i := range c.Status.Conditions {
				c.Status.Conditions[i].LastTransitionTime = since
			}
		}
	}
	registered := set(karpv1.ConditionTypeRegistered, metav1.ConditionTrue, "x", "")
	initialized := set(karpv1.ConditionTypeInitialized, metav1.ConditionTrue, "x", "")
	uninitialized := set(karpv1.ConditionTypeInitialized, metav1.ConditionUnknown, "StartupTaintsExist", "a taint exists")
	available := func(reason string) func(claim) {
		return set(v1alpha1.ConditionMachineAvailable, metav1.ConditionFalse, reason, "no disk")
	}
	leaving := func(c claim) { c.DeletionTimestamp = &metav1.Time{Time: began} }
	node := func(ready corev1.ConditionStatus) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: ready, Reason: "KubeletNotReady", LastTransitionTime: since},
		}}}
	}
	fails := func(after time.Duration) time.Time { return since.Add(after) }
	for name, tc := range map[string]struct {
		changes  []func(claim)
		node     *corev1.Node
		unjoined bool
		deadline *int32
		want     Claim
	}{
		"it has no Node":              {},
		"a Node that is ready":        {changes: []func(claim){registered, initialized}, node: node(corev1.ConditionTrue), want: Claim{Healthy: true}},
		"not initialized":             {changes: []func(claim){registered, uninitialized}, node: node(corev1.ConditionTrue), want: Claim{FailsAt: fails(10 * time.Minute)}},
		"not initialized for long":    {changes: []func(claim){registered, uninitialized}, node: node(corev1.ConditionTrue), deadline: new(int32(300)), want: Claim{FailsAt: fails(5 * time.Minute), Failure: "has a Node that is registered and not initialized (a taint exists) since 2026-01-01T11:55:00Z"}},
		"not ready":                   {changes: []func(claim){registered, initialized}, node: node(corev1.ConditionUnknown), want: Claim{FailsAt: fails(10 * time.Minute)}},
		"not ready for long":          {changes: []func(claim){registered, initialized}, node: node(corev1.ConditionFalse), deadline: new(int32(60)), want: Claim{FailsAt: fails(time.Minute), Failure: "has the Node n, which is not ready (KubeletNotReady) since 2026-01-01T11:55:00Z"}},
		"its Node no longer exists":   {changes: []func(claim){registered, initialized}},
		"it ends with a Node":         {changes: []func(claim){registered, initialized, leaving}, node: node(corev1.ConditionFalse), deadline: new(int32(60)), want: Claim{Ending: true}},
		"the machine has failed":      {changes: []func(claim){available(v1alpha1.ReasonMachineFailed)}, want: Claim{Failure: "could not be launched (MachineFailed): no disk"}},
		"the launch takes too long":   {changes: []func(claim){available(v1alpha1.ReasonLaunchTimeout), leaving}, want: Claim{Ending: true, Failure: "could not be launched (LaunchTimeout): no disk"}},
		"there is no capacity":        {changes: []func(claim){available(v1alpha1.ReasonInsufficientCapacity), leaving}, want: Claim{Ending: true}},
		"a quota is used up":          {changes: []func(claim){available(v1alpha1.ReasonQuotaExceeded), leaving}, want: Claim{Ending: true}},
		"no Node has joined":          {changes: []func(claim){leaving}, unjoined: true, want: Claim{Ending: true, Failure: "was deleted because its Node has not joined"}},
		"it waits like another one":   {unjoined: true},
		"it is deleted before":        {changes: []func(claim){leaving}, want: Claim{Ending: true}},
		"a registered one is deleted": {changes: []func(claim){registered, leaving}, unjoined: true, want: Claim{Ending: true}},
		"it is repaired":              {changes: []func(claim){registered, initialized, set(karpv1.ConditionTypeDisruptionReason, metav1.ConditionTrue, "Unhealthy", "")}, node: node(corev1.ConditionTrue), want: Claim{Failure: "is replaced by node repair"}},
		"it is restarted":             {changes: []func(claim){registered, initialized, set(karpv1.ConditionTypeDisruptionReason, metav1.ConditionTrue, "Unhealthy", ""), set(karpv1.ConditionTypeRebooting, metav1.ConditionTrue, "RebootIssued", "")}, node: node(corev1.ConditionUnknown), want: Claim{Failure: "is restarted by node repair"}},
		"it was restarted": {
			changes: []func(claim){registered, uninitialized, set(karpv1.ConditionTypeRebooting, metav1.ConditionFalse, "RebootSucceeded", ""), func(c claim) {
				for i := range c.Status.Conditions {
					if c.Status.Conditions[i].Type == karpv1.ConditionTypeRegistered {
						c.Status.Conditions[i].LastTransitionTime = metav1.NewTime(since.Add(-time.Hour))
					}
				}
			}},
			node: node(corev1.ConditionTrue), want: Claim{FailsAt: fails(10 * time.Minute)},
		},
		"it is consolidated": {changes: []func(claim){registered, initialized, set(karpv1.ConditionTypeDisruptionReason, metav1.ConditionTrue, "Underutilized", "")}, node: node(corev1.ConditionTrue), want: Claim{Healthy: true}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "a", CreationTimestamp: metav1.NewTime(began.Add(-time.Hour))}}
			for _, change := range tc.changes {
				change(c)
			}
			tc.want.Name, tc.want.UID, tc.want.Created = "a", "a", began.Add(-time.Hour)
			got := Observe(c, Observed{Unjoined: tc.unjoined, Node: tc.node}, &v1alpha1.Rollout{ProgressDeadlineSeconds: tc.deadline}, began)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
