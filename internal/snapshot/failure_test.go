// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/failure"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/settings"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

var (
	durations = settings.Settings{LaunchTimeout: 10 * time.Minute, SpareTTL: 2 * time.Minute}
)

func TestFailure(t *testing.T) {
	booting := func(age time.Duration) *clusterv1.Machine {
		return fixture.WithCondition(fixture.Machine(age), clusterv1.MachineInfrastructureReadyCondition, metav1.ConditionFalse, "NotReady", "still creating", fixture.Noon)
	}
	onVSphere := func(reason, message string) *clusterv1.Machine {
		machine := fixture.WithCondition(fixture.Machine(10*time.Minute), clusterv1.MachineInfrastructureReadyCondition, metav1.ConditionFalse, "NotReady", "* VirtualMachineProvisioned: NotProvisioned", fixture.Noon)
		machine.Status.Deprecated = &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{ //nolint:staticcheck // Providers of contract v1beta1 report there.
			Conditions: clusterv1.Conditions{{Type: clusterv1.InfrastructureReadyV1Beta1Condition, Status: "False", Severity: "Warning", Reason: reason, Message: message}}, //nolint:staticcheck // As above.
		}}
		return machine
	}
	onlyV1Beta1 := onVSphere("CloningFailed", "no such template")
	onlyV1Beta1.Status.Conditions = nil
	other := func(age time.Duration) *clusterv1.Machine {
		machine := serving(fixture.Machine(age), "other")
		machine.Name = "other"
		return machine
	}
	withID := fixture.Machine(time.Hour)
	withID.Spec.ProviderID = "real://m"
	leaving := fixture.Machine(time.Hour)
	leaving.Labels = map[string]string{v1alpha1.NodeClaimUIDLabel: "c"}
	leaving.DeletionTimestamp = new(metav1.NewTime(fixture.Noon))
	registered, otherClaim := fixture.Claim(time.Hour), fixture.Claim(time.Hour)
	registered.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered)
	otherClaim.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered)
	otherClaim.Name, otherClaim.UID = "other", "other"
	waited := fixture.Claim(time.Hour)
	waited.StatusConditions().SetUnknownWithReason(v1alpha1.ConditionMachineAvailable, v1alpha1.ReasonResumed, "")
	for i := range waited.Status.Conditions {
		if waited.Status.Conditions[i].Type == v1alpha1.ConditionMachineAvailable {
			waited.Status.Conditions[i].LastTransitionTime = metav1.NewTime(fixture.Noon.Add(-time.Minute))
		}
	}
	resumed := &clusterv1.MachineDeployment{}
	conditions.Set(resumed, metav1.Condition{Type: clusterv1.PausedCondition, Status: metav1.ConditionFalse, Reason: "NotPaused", LastTransitionTime: metav1.NewTime(fixture.Noon.Add(-time.Minute))})
	scaling := &clusterv1.MachineDeployment{}
	conditions.Set(scaling, metav1.Condition{Type: clusterv1.ScalingUpCondition, Status: metav1.ConditionTrue, Reason: "ScalingUp", Message: "its Cluster is not ready"})

	for name, tc := range map[string]struct {
		claim    *karpv1.NodeClaim
		machine  *clusterv1.Machine // the one that serves the claim
		machines []*clusterv1.Machine
		resource *clusterv1.MachineDeployment // if nil, one that shows nothing
		none     bool                         // no resource exists
		blocked  string
		up       time.Duration   // for how long both clusters could be reached; always if zero
		failed   failure.Failure // of the Machine
		want     string          // a part of the message; empty for no failure
		stall    string
	}{
		"a Machine in time":                    {claim: fixture.Claim(time.Minute), machine: booting(9 * time.Minute)},
		"a Machine after launchTimeoutSeconds": {claim: fixture.Claim(time.Minute), machine: booting(10 * time.Minute), want: "Machine m has had no provider ID for 10m0s: NotReady: still creating"},
		// The conditions of a Machine on vSphere: only the deprecated one has the reason.
		"a Machine after launchTimeoutSeconds whose provider has contract v1beta1": {
			claim: fixture.Claim(time.Minute), machine: onVSphere("CloningFailed", `unable to find template by name "no-such-template"`),
			want: `for 10m0s: NotReady: * VirtualMachineProvisioned: NotProvisioned (CloningFailed: unable to find template by name "no-such-template")`,
		},
		"a Machine after launchTimeoutSeconds whose provider reports the same twice": {
			claim: fixture.Claim(time.Minute), machine: onVSphere("Failed", "VirtualMachineProvisioned: NotProvisioned"),
			want: "for 10m0s: NotReady: * VirtualMachineProvisioned: NotProvisioned\n",
		},
		"a Machine after launchTimeoutSeconds of which only the older API version reports a problem": {
			claim: fixture.Claim(time.Minute), machine: onlyV1Beta1, want: "for 10m0s: CloningFailed: no such template\n",
		},
		"a Machine with a provider ID": {claim: fixture.Claim(time.Hour), machine: withID},
		"a Machine that has failed":    {claim: fixture.Claim(time.Minute), machine: booting(time.Minute), failed: failure.Failure{Kind: failure.InsufficientCapacity, Message: "no capacity"}, want: "no capacity"},
		"a Machine that was paused":    {claim: fixture.Claim(time.Minute), machine: fixture.WithCondition(booting(time.Hour), clusterv1.PausedCondition, metav1.ConditionFalse, "NotPaused", "", fixture.Noon.Add(-time.Minute))},
		"a Machine that is paused":     {claim: fixture.Claim(time.Minute), machine: fixture.WithCondition(booting(time.Hour), clusterv1.PausedCondition, metav1.ConditionTrue, "Paused", "", fixture.Noon.Add(-time.Minute)), want: "no provider ID"},
		"a Machine that waits for its bootstrap data": {
			claim: fixture.Claim(time.Minute), machine: fixture.WithCondition(booting(10*time.Minute), clusterv1.MachineBootstrapConfigReadyCondition, metav1.ConditionFalse, "NotReady", "no token", fixture.Noon),
			want: "for 10m0s: NotReady: no token\n",
		},
		"a Machine that has its bootstrap data": {
			claim: fixture.Claim(time.Minute), machine: fixture.WithCondition(booting(10*time.Minute), clusterv1.MachineBootstrapConfigReadyCondition, metav1.ConditionTrue, "Ready", "all is well", fixture.Noon),
			want: "for 10m0s: NotReady: still creating\n",
		},
		"no Machine, which only the MachineDeployment explains": {claim: fixture.Claim(10 * time.Minute), resource: scaling, want: "no Machine in 10m0s: ScalingUp: its Cluster is not ready\n"},
		"a Machine 9 minutes after an outage":                   {claim: fixture.Claim(time.Hour), machine: booting(time.Hour), up: 9 * time.Minute},
		"a Machine 10 minutes after an outage":                  {claim: fixture.Claim(time.Hour), machine: booting(time.Hour), up: 10 * time.Minute, want: "no provider ID"},
		"no Machine 9 minutes after an outage":                  {claim: fixture.Claim(time.Hour), up: 9 * time.Minute},
		"no Machine 10 minutes after an outage":                 {claim: fixture.Claim(time.Hour), up: 10 * time.Minute, want: "no Machine in 10m0s"},
		"no Machine yet":                                        {claim: fixture.Claim(9 * time.Minute)},
		"no Machine after launchTimeoutSeconds":                 {claim: fixture.Claim(10 * time.Minute), resource: &clusterv1.MachineDeployment{}, blocked: ": ScalingUp: MachineSet version skew preflight check failed", want: "no Machine in 10m0s: ScalingUp: MachineSet version skew"},
		"no MachineDeployment after launchTimeoutSeconds":       {claim: fixture.Claim(10 * time.Minute), none: true, stall: "no MachineDeployment general exists yet: see the events of the NodeClaim"},
		"a claim whose stall has ended since":                   {claim: waited},
		"a resource that was paused":                            {claim: fixture.Claim(time.Hour), resource: resumed},
		"no Machine, and another was created a minute ago":      {claim: fixture.Claim(time.Hour), machines: []*clusterv1.Machine{other(time.Minute)}},
		"no Machine, and another was created 10 minutes ago":    {claim: fixture.Claim(time.Hour), machines: []*clusterv1.Machine{other(10 * time.Minute)}, want: "no Machine in 10m0s"},
		"a resource that was paused, with an older Machine":     {claim: fixture.Claim(time.Hour), resource: resumed, machines: []*clusterv1.Machine{other(time.Hour)}},
		"a claim whose only Machine is being deleted":           {claim: fixture.Claim(time.Hour), machines: []*clusterv1.Machine{leaving}},
		"a claim that has its Node":                             {claim: registered},
	} {
		t.Run(name, func(t *testing.T) {
			resource := scalable.New(cmp.Or(tc.resource, &clusterv1.MachineDeployment{}))
			if tc.none {
				resource = nil
			}
			machines := tc.machines
			if tc.machine != nil {
				machines = append(machines, serving(tc.machine, "c"))
			}
			state := &snapshotOf(t, resource, []*karpv1.NodeClaim{tc.claim, otherClaim}, machines...).State
			if resource != nil {
				state.Replicas = 1 + int32(len(machines))
			}
			state.Problem = cmp.Or(tc.blocked, state.Problem)
			if tc.up > 0 {
				state.UpSince = fixture.Noon.Add(-tc.up)
			}
			if tc.machine != nil {
				state.Machines[0].Failure = tc.failed
			}
			outcome := planner.Decide(state).Outcomes["c"]
			got, none := outcome.Failure, failure.Failure{}
			if (got == none) != (tc.want == "") || !strings.Contains(got.Message+"\n", tc.want) {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
			if got != none && tc.failed == none && got.Kind != planner.LaunchTimeout {
				t.Errorf("got the kind %s", got.Kind)
			}
			if outcome.Stall.Message != tc.stall {
				t.Errorf("got the stall %+v, want %q", outcome.Stall, tc.stall)
			}
		})
	}
}

func TestSpareMachines(t *testing.T) {
	node := func(machine *clusterv1.Machine) *clusterv1.Machine {
		machine.Status.NodeRef = clusterv1.MachineNodeReference{Name: "n"}
		return machine
	}
	since := func(machine *clusterv1.Machine, age time.Duration) *clusterv1.Machine {
		machine.Annotations = map[string]string{v1alpha1.SpareSinceAnnotation: timestamp.Format(fixture.Noon.Add(-age))}
		return machine
	}
	edited := fixture.Machine(time.Minute)
	edited.Annotations = map[string]string{v1alpha1.SpareSinceAnnotation: "yesterday"}
	for name, tc := range map[string]struct {
		machine *clusterv1.Machine
		fresh   bool           // its Node is not registered
		up      time.Duration  // for how long both clusters could be reached; always if zero
		removed planner.Reason // why the plan removes it; empty if it does not
		dueIn   time.Duration
	}{
		"created a minute ago":              {machine: fixture.Machine(time.Minute), dueIn: time.Minute},
		"created two minutes ago":           {machine: fixture.Machine(2 * time.Minute), removed: planner.SpareTTLEnds, dueIn: 8 * time.Minute},
		"created before an outage":          {machine: fixture.Machine(2 * time.Minute), up: time.Minute, dueIn: time.Minute},
		"unlinked a minute ago":             {machine: since(fixture.Machine(5*time.Minute), time.Minute), dueIn: time.Minute},
		"unlinked a minute ago, and old":    {machine: since(fixture.Machine(time.Hour), time.Minute), removed: planner.TookTooLong, dueIn: time.Minute},
		"unlinked, with an invalid time":    {machine: edited, dueIn: time.Minute},
		"a Node that has just joined":       {machine: node(fixture.Machine(time.Minute)), fresh: true, dueIn: time.Minute},
		"a Node without spare-since":        {machine: node(fixture.Machine(time.Hour))},
		"a Node, spare for spareTTLSeconds": {machine: node(since(fixture.Machine(time.Hour), 2*time.Minute)), removed: planner.SpareTTLEnds},
	} {
		t.Run(name, func(t *testing.T) {
			state := stateFrom(t, nil, tc.machine)
			if tc.up > 0 {
				state.UpSince = fixture.Noon.Add(-tc.up)
			}
			if tc.fresh {
				state.Machines[0].HasNode = false
			}
			if got, want := state.Machines[0].WasLinked, tc.machine.Annotations[v1alpha1.SpareSinceAnnotation] != ""; got != want {
				t.Errorf("it has served a claim: got %t, want %t", got, want)
			}
			plan := planner.Decide(state)
			if got := plan.Because["m"]; got != tc.removed || lo.Contains(plan.Marks, "m") != (tc.removed != "") {
				t.Errorf("it is removed, because %q, want %q; marks: %v", got, tc.removed, plan.Marks)
			}
			if got := plan.Due.In; got != tc.dueIn {
				t.Errorf("due in %s, want %s", got, tc.dueIn)
			}
		})
	}
}

// If more replicas, or the resource, were rejected, that is why a claim has no Machine. A rejection that was
// overcome since is not.
func TestFailureRepeatsTheRejection(t *testing.T) {
	claim := fixture.Claim(time.Hour)
	claim.StatusConditions().SetUnknownWithReason(v1alpha1.ConditionMachineAvailable, v1alpha1.ReasonRejected, "denied by a quota")
	for i := range claim.Status.Conditions {
		claim.Status.Conditions[i].LastTransitionTime = claim.CreationTimestamp
	}
	for name, tc := range map[string]struct {
		resource *scalable.Resource
		want     string
	}{
		"its resource":  {want: "no Machine in 10m0s: denied by a quota"},
		"its replicas":  {resource: scalable.New(deployment(0)), want: "no Machine in 10m0s: denied by a quota"},
		"neither since": {resource: scalable.New(deployment(1)), want: "no Machine in 10m0s: ScalingUp: version skew"},
	} {
		t.Run(name, func(t *testing.T) {
			state := &snapshotOf(t, tc.resource, []*karpv1.NodeClaim{claim}).State
			state.Problem = ": ScalingUp: version skew"
			if got := planner.Decide(state).Outcomes["c"].Failure; !strings.HasSuffix(got.Message, tc.want) {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
		})
	}
}
