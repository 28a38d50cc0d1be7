// SPDX-License-Identifier: Apache-2.0

package remediation

import (
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Each reason is matched by the policies that replace a Node, until it is announced. Then those match that restart it.
func TestAnnounce(t *testing.T) {
	restarts, replaces := regexp.MustCompile(Announced), regexp.MustCompile(NotAnnounced)
	for _, reason := range []string{"", "KubeletNotReady", "NodeStatusUnknown", "a reason: with any text", "remediation"} {
		if restarts.MatchString(reason) || !replaces.MatchString(reason) {
			t.Errorf("%q: restarted %t, replaced %t", reason, restarts.MatchString(reason), replaces.MatchString(reason))
		}
		node := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: "KernelDeadlock", Reason: reason}, {Type: corev1.NodeReady, Reason: reason}}}}
		Announce(node)
		for _, condition := range node.Status.Conditions {
			if condition.Reason != reason+" (remediation)" || !restarts.MatchString(condition.Reason) || replaces.MatchString(condition.Reason) {
				t.Errorf("%q is announced as %q: restarted %t, replaced %t", reason, condition.Reason, restarts.MatchString(condition.Reason), replaces.MatchString(condition.Reason))
			}
		}
	}
}

func TestUsable(t *testing.T) {
	type template = *v1alpha1.KarpenterMachineTemplate
	for name, tc := range map[string]struct {
		change func(template)
		want   bool
	}{
		"it is ready":                  {change: func(template) {}, want: true},
		"it names nothing any more":    {change: func(t template) { t.Spec.Remediation = nil }},
		"it is being deleted":          {change: func(t template) { t.DeletionTimestamp = new(metav1.Now()) }},
		"its remediation is not ready": {change: func(t template) { t.StatusConditions().SetFalse(v1alpha1.ConditionRemediationReady, "x", "") }},
		"the Cluster is paused": {change: func(t template) {
			t.StatusConditions().SetFalse(v1alpha1.ConditionClusterReady, v1alpha1.ReasonClusterPaused, "")
		}},
		"it launches nothing":            {change: func(t template) { t.StatusConditions().SetFalse(v1alpha1.ConditionInstanceTypesReady, "x", "") }, want: true},
		"its conditions are not set yet": {change: func(t template) { t.Status.Conditions = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			template := &v1alpha1.KarpenterMachineTemplate{Spec: v1alpha1.KarpenterMachineTemplateSpec{Remediation: &v1alpha1.Remediation{}}}
			template.StatusConditions().SetTrue(v1alpha1.ConditionRemediationReady)
			tc.change(template)
			if got := Usable(template); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
