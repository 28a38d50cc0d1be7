// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
)

// A Machine that nothing acts on is not reported while a Machine of another resource progresses, and nothing is written.
func TestStallWhileAnotherResourceProgresses(t *testing.T) {
	const other = "general-large"
	for name, tc := range map[string]struct {
		created time.Duration // before now, the Machine of the other resource
		changed time.Duration // its phase; zero for never
		known   bool          // the process has reconciled the other resource
		want    string
	}{
		"it was created 10 seconds ago":                 {created: 10 * time.Second, known: true},
		"it changed its phase 10 seconds ago":           {created: time.Hour, changed: 10 * time.Second, known: true},
		"it progressed a minute ago":                    {created: time.Hour, changed: time.Minute, known: true, want: v1alpha1.ReasonNoProgress},
		"the process does not know of the other's":      {created: 10 * time.Second, want: v1alpha1.ReasonNoProgress},
		"its times are those of a clock that runs fast": {created: -time.Hour, changed: -time.Minute, known: true, want: v1alpha1.ReasonNoProgress},
	} {
		t.Run(name, func(t *testing.T) {
			ago := func(age time.Duration) metav1.Time { return metav1.NewTime(now.Add(-age)) }
			resource := &clusterv1.MachineDeployment{
				ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: other, Labels: labels()},
				Spec:       clusterv1.MachineDeploymentSpec{ClusterName: "served", Replicas: new(int32(1))},
			}
			w := newWorld(launched("a"), resource,
				machine("silent", linkedTo("a"), func(m *clusterv1.Machine) { m.CreationTimestamp = ago(time.Minute) }),
				machine("progresses", infrastructure("NotReady"), func(m *clusterv1.Machine) {
					m.Labels[clusterv1.MachineDeploymentNameLabel] = other
					m.CreationTimestamp = ago(tc.created)
					if tc.changed != 0 {
						m.Status.LastUpdated = ago(tc.changed)
					}
				}))
			r := w.newProcess()
			if tc.known {
				if err := reconcileNamed(t, r, other); err != nil {
					t.Fatal(err)
				}
			}
			before := w.claim(t, "a")
			if err := reconcileOnce(t, r); err != nil {
				t.Fatal(err)
			}
			after, reason := w.claim(t, "a"), ""
			if available := nodeclaims.ConditionOf(after, v1alpha1.ConditionMachineAvailable); available != nil {
				reason = available.Reason
			}
			if reason != tc.want {
				t.Errorf("got the reason %q, want %q", reason, tc.want)
			}
			if written := before.ResourceVersion != after.ResourceVersion; written != (tc.want != "") {
				t.Errorf("the NodeClaim is written: %t", written)
			}
		})
	}
}
