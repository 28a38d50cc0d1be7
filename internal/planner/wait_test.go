// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// earlier returns the time that many seconds before the states of these tests.
func earlier(seconds int) time.Time {
	return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).Add(-time.Duration(seconds) * time.Second)
}

// A claim reports what its Machine waits for when that takes longer than usual, and again when something else is reported.
func TestWaits(t *testing.T) {
	notReady := func(reason, message string) Condition {
		return Condition{Status: metav1.ConditionFalse, Reason: reason, Message: message}
	}
	infrastructure := notReady("InstanceProvisionFailed", "attempt 3 at 12:01:07: image ubuntu-24 does not exist")
	const launches = "Machine m has no provider ID: InstanceProvisionFailed: attempt 3 at 12:01:07: image ubuntu-24 does not exist"
	for name, tc := range map[string]struct {
		age           time.Duration
		launchTimeout time.Duration // 10 minutes if zero
		machine       Machine
		claim         Claim
		want          Wait
	}{
		"a launch as usual":          {age: 179 * time.Second, machine: Machine{Infrastructure: infrastructure}},
		"a slow launch":              {age: 3 * time.Minute, machine: Machine{Infrastructure: infrastructure}, want: Wait{v1alpha1.ReasonWaitingForInfrastructure, launches}},
		"half of the launch timeout": {age: time.Minute, launchTimeout: 2 * time.Minute, machine: Machine{Infrastructure: infrastructure}, want: Wait{v1alpha1.ReasonWaitingForInfrastructure, launches}},
		"the infrastructure reports nothing": {
			age: 3 * time.Minute, want: Wait{v1alpha1.ReasonWaitingForInfrastructure, "Machine m has no provider ID"},
		},
		"the bootstrap data is missing": {
			age: 3 * time.Minute, machine: Machine{Bootstrap: notReady("DataSecretGenerationFailed", "the ConfigMap cluster-info does not exist"), Infrastructure: notReady("WaitingForBootstrapData", "")},
			want: Wait{v1alpha1.ReasonWaitingForBootstrap, "Machine m has no bootstrap data: DataSecretGenerationFailed: the ConfigMap cluster-info does not exist"},
		},
		"an instance that was provisioned a short time ago": {
			age: 9 * time.Minute, machine: Machine{ProviderID: "real://m", ProvisionedAt: earlier(179)},
		},
		"the Node is missing": {
			age: 9 * time.Minute, machine: Machine{ProviderID: "real://m", ProvisionedAt: earlier(180)},
			want: Wait{v1alpha1.ReasonWaitingForNode, "Machine m has its provider ID, and no Node has joined with it"},
		},
		"cloud-init failed": {
			age: 9 * time.Minute, machine: Machine{ProviderID: "real://m", Infrastructure: notReady("BootstrapFailed", "cloud-init exited with status 1")},
			want: Wait{v1alpha1.ReasonWaitingForNode, "Machine m has its provider ID, and no Node has joined with it: BootstrapFailed: cloud-init exited with status 1"},
		},
		"its Node has joined":      {age: 9 * time.Minute, machine: Machine{ProviderID: "real://m", Node: "n", HasNode: true}},
		"its launch resumed since": {age: 9 * time.Minute, claim: Claim{ResumedAt: earlier(179)}},
		"the same is reported, with another time and count": {
			age: 3 * time.Minute, machine: Machine{Infrastructure: infrastructure},
			claim: Claim{Ready: notReady(v1alpha1.ReasonWaitingForInfrastructure, "Machine m has no provider ID: InstanceProvisionFailed: attempt 1 at 11:59:30: image ubuntu-24 does not exist")},
		},
		"another message is reported": {
			age: 3 * time.Minute, machine: Machine{Infrastructure: infrastructure},
			claim: Claim{Ready: notReady(v1alpha1.ReasonWaitingForInfrastructure, "Machine m has no provider ID: InstanceProvisionFailed: the network does not exist")},
			want:  Wait{v1alpha1.ReasonWaitingForInfrastructure, launches},
		},
		"another reason is reported": {
			age: 3 * time.Minute, claim: Claim{Ready: notReady(v1alpha1.ReasonWaitingForBootstrap, "Machine m has no provider ID")},
			want: Wait{v1alpha1.ReasonWaitingForInfrastructure, "Machine m has no provider ID"},
		},
		"another Machine is reported": {
			age: 3 * time.Minute, claim: Claim{Ready: notReady(v1alpha1.ReasonWaitingForInfrastructure, "Machine 0 has no provider ID")},
			want: Wait{v1alpha1.ReasonWaitingForInfrastructure, "Machine m has no provider ID"},
		},
		"the Machine is stalled": {age: 3 * time.Minute, machine: Machine{Stall: NoProgress("nothing acts")}},
	} {
		t.Run(name, func(t *testing.T) {
			machine, claim := tc.machine, tc.claim
			machine.Name, machine.Claim, machine.Created = "m", "c", earlier(int(tc.age.Seconds()))
			claim.UID, claim.Name, claim.NeedsMachine, claim.Created = "c", "c", true, earlier(3600)
			state := State{Now: earlier(0), Exists: true, Replicas: 1, Durations: Durations{LaunchTimeout: 10 * time.Minute, NoProgress: 30 * time.Second}, Claims: []Claim{claim}, Machines: []Machine{machine}}
			if tc.launchTimeout > 0 {
				state.Durations.LaunchTimeout = tc.launchTimeout
			}
			if diff := cmp.Diff(tc.want, Decide(&state).Outcomes["c"].Waits); diff != "" {
				t.Errorf("wrong report (-want +got):\n%s", diff)
			}
		})
	}
}

// A claim that has reported that its Machine waits reports the end of that when its Node has registered.
func TestArrived(t *testing.T) {
	for name, tc := range map[string]struct {
		reported   metav1.ConditionStatus
		registered bool
		want       string
	}{
		"it waits":           {reported: metav1.ConditionFalse},
		"it waits no longer": {reported: metav1.ConditionFalse, registered: true, want: "m"},
		"that is reported":   {reported: metav1.ConditionTrue, registered: true},
		"it was as usual":    {registered: true},
	} {
		t.Run(name, func(t *testing.T) {
			claim := Claim{UID: "c", Name: "c", NeedsMachine: !tc.registered, Registered: tc.registered, Ready: Condition{Status: tc.reported}}
			state := State{
				Now: earlier(0), Exists: true, Replicas: 1, Durations: Durations{LaunchTimeout: 10 * time.Minute}, Claims: []Claim{claim},
				Machines: []Machine{{Name: "m", Claim: "c", ProviderID: "real://m", Node: "n", HasNode: true}},
			}
			if got := Decide(&state).Outcomes["c"].Arrived; got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
