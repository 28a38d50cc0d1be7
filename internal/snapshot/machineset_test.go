// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/failure"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

func scalingUp(set *clusterv1.MachineSet, message string) *clusterv1.MachineSet {
	conditions.Set(set, metav1.Condition{Type: clusterv1.MachineSetScalingUpCondition, Status: metav1.ConditionTrue, Reason: "ScalingUp", Message: message})
	return set
}

func TestReadMachineSets(t *testing.T) {
	behind, going := fixture.MachineSet("a", "general", 2), fixture.MachineSet("b", "general", 2)
	behind.Status.ObservedGeneration = 2
	going.DeletionTimestamp, going.Finalizers, going.Status.ObservedGeneration = new(metav1.NewTime(fixture.Noon)), []string{"x"}, 1
	for name, tc := range map[string]struct {
		sets    []*clusterv1.MachineSet
		want    planner.MachineSet
		problem string
	}{
		"none":                      {},
		"one":                       {sets: []*clusterv1.MachineSet{fixture.MachineSet("a", "general", 2)}, want: planner.MachineSet{Replicas: 2}},
		"one that is behind":        {sets: []*clusterv1.MachineSet{behind}, want: planner.MachineSet{Replicas: 2, Behind: true}},
		"two, one of them behind":   {sets: []*clusterv1.MachineSet{behind, fixture.MachineSet("b", "general", 1)}, want: planner.MachineSet{Replicas: 3, Behind: true}},
		"one that is being deleted": {sets: []*clusterv1.MachineSet{fixture.MachineSet("a", "general", 1), going}, want: planner.MachineSet{Replicas: 1}},
		"one of another resource":   {sets: []*clusterv1.MachineSet{fixture.MachineSet("a", "other", 2)}},
		"one that cannot scale": {sets: []*clusterv1.MachineSet{scalingUp(fixture.MachineSet("a", "general", 2), "version skew preflight check failed")},
			want: planner.MachineSet{Replicas: 2}, problem: ": ScalingUp: version skew preflight check failed"},
		"the first of two problems": {sets: []*clusterv1.MachineSet{scalingUp(fixture.MachineSet("a", "general", 1), "one"), scalingUp(fixture.MachineSet("b", "general", 1), "two")},
			want: planner.MachineSet{Replicas: 2}, problem: ": ScalingUp: one"},
		"one that reports no reason": {sets: []*clusterv1.MachineSet{scalingUp(fixture.MachineSet("a", "general", 2), "")}, want: planner.MachineSet{Replicas: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			for _, set := range tc.sets {
				objects = append(objects, set)
			}
			snap := snapshotOf(t, nil, nil)
			if err := snap.readMachineSets(t.Context(), fixture.Clusters(objects...)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(planner.Scaling(tc.want), snap.State.Scaling); diff != "" {
				t.Errorf("scaling (-want +got):\n%s", diff)
			}
			if snap.State.Problem != tc.problem {
				t.Errorf("problem: got %q, want %q", snap.State.Problem, tc.problem)
			}
		})
	}
}

// The failure of a claim that has waited for launchTimeoutSeconds has the reason why its MachineSet creates
// no Machines.
func TestFailureSaysWhatIsWrongWithScaling(t *testing.T) {
	for age, want := range map[time.Duration]planner.Outcome{
		9 * time.Minute: {},
		10 * time.Minute: {Failure: failure.Failure{
			Kind: planner.LaunchTimeout, Message: "Cluster API has created no Machine in 10m0s: ScalingUp: version skew preflight check failed",
		}},
	} {
		snap := snapshotOf(t, scalable.New(deployment(1)), []*karpv1.NodeClaim{fixture.Claim(age)})
		set := scalingUp(fixture.MachineSet("a", "general", 1), "version skew preflight check failed")
		if err := snap.readMachineSets(t.Context(), fixture.Clusters(set)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, planner.Decide(&snap.State).Outcomes["c"]); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", age, diff)
		}
	}
}
