// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/failure"
	"github.com/karpenter-capi/karpenter-capi/internal/link"
)

var (
	noon     = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	settings = Settings{LaunchTimeout: 10 * time.Minute, SpareTTL: 2 * time.Minute}
)

// claim returns a launched claim that was made some time ago.
func claimOf(age time.Duration) *karpv1.NodeClaim {
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "c", CreationTimestamp: metav1.NewTime(noon.Add(-age))}}
	claim.StatusConditions().SetTrue(karpv1.ConditionTypeLaunched)
	for i := range claim.Status.Conditions {
		claim.Status.Conditions[i].LastTransitionTime = claim.CreationTimestamp
	}
	return claim
}

func machineOf(age time.Duration) *clusterv1.Machine {
	return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m", CreationTimestamp: metav1.NewTime(noon.Add(-age))}}
}

func says(machine *clusterv1.Machine, kind string, status metav1.ConditionStatus, reason, message string, since time.Time) *clusterv1.Machine {
	conditions.Set(machine, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(since)})
	return machine
}

func TestFailure(t *testing.T) {
	booting := func(age time.Duration) *clusterv1.Machine {
		return says(machineOf(age), clusterv1.MachineInfrastructureReadyCondition, metav1.ConditionFalse, "NotReady", "still creating", noon)
	}
	withID := machineOf(time.Hour)
	withID.Spec.ProviderID = "real://m"
	leaving := machineOf(time.Hour)
	leaving.Labels = map[string]string{v1alpha1.NodeClaimUIDLabel: "c"}
	leaving.DeletionTimestamp = new(metav1.NewTime(noon))
	registered := claimOf(time.Hour)
	registered.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered)
	moved := claimOf(time.Hour)
	moved.StatusConditions().SetUnknownWithReason(v1alpha1.ConditionMachineAvailable, v1alpha1.ReasonOfferingChanged, "")
	for i := range moved.Status.Conditions {
		if moved.Status.Conditions[i].Type == v1alpha1.ConditionMachineAvailable {
			moved.Status.Conditions[i].LastTransitionTime = metav1.NewTime(noon.Add(-time.Minute))
		}
	}
	resumed := &clusterv1.MachineDeployment{}
	conditions.Set(resumed, metav1.Condition{Type: clusterv1.PausedCondition, Status: metav1.ConditionFalse, Reason: "NotPaused", LastTransitionTime: metav1.NewTime(noon.Add(-time.Minute))})

	for name, tc := range map[string]struct {
		claim    *karpv1.NodeClaim
		machine  *clusterv1.Machine // that serves the claim
		machines []*clusterv1.Machine
		resource *clusterv1.MachineDeployment
		blocked  string
		failed   *failure.Failure // of the Machine
		want     string           // a part of the message; empty for no failure
	}{
		"a Machine in time":                             {claim: claimOf(time.Minute), machine: booting(9 * time.Minute)},
		"a Machine too late":                            {claim: claimOf(time.Minute), machine: booting(10 * time.Minute), want: "Machine m has had no provider ID for 10m0s: NotReady: still creating"},
		"a Machine with a provider ID":                  {claim: claimOf(time.Hour), machine: withID},
		"a Machine that has failed":                     {claim: claimOf(time.Minute), machine: booting(time.Minute), failed: &failure.Failure{Message: "no capacity"}, want: "no capacity"},
		"a Machine that was paused":                     {claim: claimOf(time.Minute), machine: says(booting(time.Hour), clusterv1.PausedCondition, metav1.ConditionFalse, "NotPaused", "", noon.Add(-time.Minute))},
		"no Machine yet":                                {claim: claimOf(9 * time.Minute)},
		"no Machine for long":                           {claim: claimOf(10 * time.Minute), resource: &clusterv1.MachineDeployment{}, blocked: ": ScalingUp: MachineSet version skew preflight check failed", want: "no Machine in 10m0s: ScalingUp: MachineSet version skew"},
		"no MachineDeployment for long":                 {claim: claimOf(10 * time.Minute), want: "there is no MachineDeployment"},
		"a claim that has moved since":                  {claim: moved},
		"a resource that was paused":                    {claim: claimOf(time.Hour), resource: resumed},
		"a claim whose Machine is going, with no other": {claim: claimOf(time.Hour), machines: []*clusterv1.Machine{leaving}},
		"a claim that has its Node":                     {claim: registered},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Snapshot{Now: noon, Settings: settings, scalingProblem: tc.blocked, Machines: map[string]*clusterv1.Machine{}, failed: map[string]*failure.Failure{}}
			if tc.resource != nil {
				s.Resource = resourceOf(machineDeployments{}, tc.resource)
			}
			s.Plan.Served = map[types.UID]string{}
			for _, machine := range tc.machines {
				s.Machines[machine.Name] = machine
			}
			if tc.machine != nil {
				s.Machines["m"], s.Plan = tc.machine, link.Plan{Served: map[types.UID]string{"c": "m"}}
			}
			if tc.failed != nil {
				s.failed["m"] = tc.failed
			}
			got := s.Failure(tc.claim)
			if (got == nil) != (tc.want == "") || got != nil && !strings.Contains(got.Message, tc.want) {
				t.Errorf("got %+v, want %q", got, tc.want)
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
		machine.Annotations = map[string]string{v1alpha1.SpareSinceAnnotation: Timestamp(noon.Add(-age))}
		return machine
	}
	edited := machineOf(time.Minute)
	edited.Annotations = map[string]string{v1alpha1.SpareSinceAnnotation: "yesterday"}
	for name, tc := range map[string]struct {
		machine        *clusterv1.Machine
		fresh          bool // its Node is not registered
		expired, unfit bool
		dueIn          time.Duration
	}{
		"made a minute ago":                   {machine: machineOf(time.Minute), dueIn: time.Minute},
		"made two minutes ago":                {machine: machineOf(2 * time.Minute), expired: true, dueIn: 8 * time.Minute},
		"released a minute ago":               {machine: since(machineOf(5*time.Minute), time.Minute), dueIn: time.Minute},
		"released a minute ago, and old":      {machine: since(machineOf(time.Hour), time.Minute), unfit: true, dueIn: time.Minute},
		"released, of a time nobody can read": {machine: edited, dueIn: time.Minute},
		"a Node that has just joined":         {machine: node(machineOf(time.Minute)), fresh: true, dueIn: time.Minute},
		"a Node that nobody knows":            {machine: node(machineOf(time.Hour))},
		"a Node that nobody knew for long":    {machine: node(since(machineOf(time.Hour), 2*time.Minute)), expired: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Snapshot{Now: noon, Settings: settings, Machines: map[string]*clusterv1.Machine{"m": tc.machine}, unregistered: map[string]bool{"m": tc.fresh}}
			if got := s.expired(tc.machine); got != tc.expired {
				t.Errorf("expired: got %t, want %t", got, tc.expired)
			}
			if got := s.unfit(tc.machine); got != tc.unfit {
				t.Errorf("unfit: got %t, want %t", got, tc.unfit)
			}
			if got := s.DueIn(); got != tc.dueIn {
				t.Errorf("due in %s, want %s", got, tc.dueIn)
			}
		})
	}
}
