// SPDX-License-Identifier: Apache-2.0

package enqueue

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Only launches and ends of NodeClaims change how much of a limit is used.
func TestLimitsChanged(t *testing.T) {
	waiting := &karpv1.NodeClaim{}
	launched := waiting.DeepCopy()
	launched.Labels = map[string]string{corev1.LabelInstanceTypeStable: "m5"}
	launched.Annotations = map[string]string{v1alpha1.ScalableResourceAnnotation: "md"}
	changes := LimitsChanged()
	for name, tc := range map[string]struct{ got, want bool }{
		"a claim that is not launched":   {changes.Create(event.CreateEvent{Object: waiting}), false},
		"a launched claim":               {changes.Create(event.CreateEvent{Object: launched}), true},
		"a launch":                       {changes.Update(event.UpdateEvent{ObjectOld: waiting, ObjectNew: launched}), true},
		"a claim that is launched again": {changes.Update(event.UpdateEvent{ObjectOld: launched, ObjectNew: waiting}), true},
		"a change before the launch":     {changes.Update(event.UpdateEvent{ObjectOld: waiting, ObjectNew: waiting}), false},
		"another change":                 {changes.Update(event.UpdateEvent{ObjectOld: launched, ObjectNew: launched}), false},
		"the end of a launched claim":    {changes.Delete(event.DeleteEvent{Object: launched}), true},
		"the end of another claim":       {changes.Delete(event.DeleteEvent{Object: waiting}), false},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: got %t", name, tc.got)
		}
	}
}
