// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"testing"
	"time"

	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// CloudProvider.Delete and the plan have the same opinion of a Machine: what Delete keeps for the next
// claim is not deleted by the plan, and the reverse.
func TestCanServe(t *testing.T) {
	condition := func(machine *clusterv1.Machine, kind string, status metav1.ConditionStatus, reason, message string, ago time.Duration) *clusterv1.Machine {
		return fixture.WithCondition(machine, kind, status, reason, message, fixture.Noon.Add(-ago))
	}
	acted := func(machine *clusterv1.Machine) *clusterv1.Machine {
		return condition(machine, clusterv1.MachineBootstrapConfigReadyCondition, metav1.ConditionTrue, "Ready", "", 0)
	}
	unpaused := func(machine *clusterv1.Machine, ago time.Duration) *clusterv1.Machine {
		return condition(machine, clusterv1.PausedCondition, metav1.ConditionFalse, "NotPaused", "", ago)
	}
	for name, tc := range map[string]struct {
		machine *clusterv1.Machine
		want    bool
	}{
		"it is younger than launchTimeoutSeconds": {machine: acted(fixture.Machine(durations.LaunchTimeout - time.Second)), want: true},
		"it is older":                           {machine: acted(fixture.Machine(durations.LaunchTimeout))},
		"it is older, and was paused":           {machine: acted(unpaused(fixture.Machine(time.Hour), durations.LaunchTimeout-time.Second)), want: true},
		"it was paused for longer than that":    {machine: acted(unpaused(fixture.Machine(time.Hour), durations.LaunchTimeout))},
		"it is older, and nothing acts on it":   {machine: fixture.Machine(time.Hour), want: true},
		"it has failed":                         {machine: acted(condition(fixture.Machine(time.Minute), clusterv1.MachineInfrastructureReadyCondition, metav1.ConditionFalse, "InsufficientInstanceCapacity", "no capacity", 0))},
		"it is not ready, which is not failure": {machine: acted(condition(fixture.Machine(time.Minute), clusterv1.MachineInfrastructureReadyCondition, metav1.ConditionFalse, "NotReady", "", 0)), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			state := ReadMachine(t.Context(), fixture.Clusters(), durations, fixture.Claim(time.Hour), fixture.OfMachineDeployment(tc.machine), fixture.Noon)
			if why := state.WhyNotSpare(state.Claims[0], state.Machines[0]); (why == "") != tc.want {
				t.Errorf("Delete does not keep it, because %q, want that it does: %t", why, tc.want)
			}
			state.Claims = nil
			if got := isUnfit(planner.Decide(&state), "m"); got == tc.want {
				t.Errorf("the plan deletes it: %t, want %t", got, !tc.want)
			}
		})
	}
}

// A Machine that has a Node, is leaving, or is not kept by the settings serves no other claim.
func TestWhyNotSpare(t *testing.T) {
	withNode, leaving := fixture.Machine(time.Minute), fixture.Machine(time.Minute)
	withNode.Status.NodeRef.Name = "n"
	leaving.DeletionTimestamp = new(metav1.NewTime(fixture.Noon))
	provisioned := fixture.WithCondition(fixture.Machine(9*time.Minute), clusterv1.MachineInfrastructureReadyCondition, metav1.ConditionTrue, "Ready", "", fixture.Noon.Add(-5*time.Minute))
	provisioned.Spec.ProviderID = "sim://m"
	unreported := provisioned.DeepCopy()
	unreported.Status.Conditions = nil
	creating := fixture.WithCondition(fixture.Machine(9*time.Minute), clusterv1.MachineInfrastructureReadyCondition, metav1.ConditionFalse, "NotReady", "", fixture.Noon.Add(-5*time.Minute))
	notKept := durations
	notKept.SpareTTL = 0
	for name, tc := range map[string]struct {
		machine *clusterv1.Machine
		spares  bool
		deleted bool // the claim, after 9 minutes in which its Node has not registered
		want    planner.Reason
	}{
		"only its Node is missing":                             {machine: provisioned, spares: true, deleted: true, want: planner.GivenUp},
		"only its Node is missing, and the claim stays":        {machine: provisioned, spares: true},
		"its instance is being created":                        {machine: creating, spares: true, deleted: true},
		"it has an ID, and its infrastructure reports nothing": {machine: unreported, spares: true, deleted: true},
		"it boots":              {machine: fixture.Machine(time.Minute), spares: true},
		"it has a Node":         {machine: withNode, spares: true, want: planner.HadPods},
		"it is being deleted":   {machine: leaving, spares: true, want: planner.IsLeaving},
		"spares are not wanted": {machine: fixture.Machine(time.Minute), want: planner.SpareTTLEnds},
	} {
		t.Run(name, func(t *testing.T) {
			settings, claim := lo.Ternary(tc.spares, durations, notKept), fixture.Claim(9*time.Minute)
			if tc.deleted {
				claim.DeletionTimestamp, claim.Status.Conditions = new(metav1.NewTime(fixture.Noon)), nil
			}
			state := ReadMachine(t.Context(), fixture.Clusters(), settings, claim, tc.machine, fixture.Noon)
			if got := state.WhyNotSpare(state.Claims[0], state.Machines[0]); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
