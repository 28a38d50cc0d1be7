// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
)

// second returns a time.
func second(n int) time.Time { return time.Unix(int64(n), 0) }

func machineVersion(uid, claim string) *clusterv1.Machine {
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}}
	if claim != "" {
		machine.Labels = map[string]string{v1alpha1.NodeClaimUIDLabel: claim}
	}
	return machine
}

// versions returns versions of a claim, each of which differs from the one before by a change.
func versions(changes ...func(*karpv1.NodeClaim)) []*karpv1.NodeClaim {
	all := []*karpv1.NodeClaim{{ObjectMeta: metav1.ObjectMeta{UID: "c", ResourceVersion: "0"}}}
	for i, change := range changes {
		next := all[i].DeepCopy()
		next.ResourceVersion = fmt.Sprint(i + 1)
		change(next)
		all = append(all, next)
	}
	return all
}

func withID(id string) func(*karpv1.NodeClaim) {
	return func(claim *karpv1.NodeClaim) { claim.Status.ProviderID = id }
}

func TestTimeline(t *testing.T) {
	timeline := newTimeline()
	timeline.observeMachine(machineVersion("m", ""), false, second(10))
	timeline.observeMachine(machineVersion("m", "c"), false, second(12))
	identified := machineVersion("m", "c")
	identified.Spec.ProviderID = "sim://m"
	timeline.observeMachine(identified, false, second(15))
	timeline.observeMachine(identified, false, second(17))              // another change
	timeline.observeMachine(machineVersion("n", ""), false, second(11)) // it stays spare
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{UID: "n"}, Spec: corev1.NodeSpec{ProviderID: "sim://m"}}
	timeline.observeNode(node, false, second(20))
	timeline.observeNode(node, false, second(25))
	for i, claim := range versions(withID(planner.ProvisionalID("c")), withID("sim://m")) {
		timeline.observeClaim(claim, false, second(9+7*i))
	}
	if diff := cmp.Diff([]time.Duration{2 * time.Second}, timeline.untilLink()); diff != "" {
		t.Errorf("until link (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]time.Duration{3 * time.Second}, timeline.untilProviderID()); diff != "" {
		t.Errorf("until provider ID (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]time.Duration{8 * time.Second}, timeline.sinceMachine()); diff != "" {
		t.Errorf("since the Machine had its provider ID (-want +got):\n%s", diff)
	}
	if err := timeline.checkRelinks(); err != nil {
		t.Errorf("got %v although no link was changed", err)
	}
	timeline.observeMachine(machineVersion("m", "d"), false, second(30))
	if err := timeline.checkRelinks(); err == nil {
		t.Error("got no error although a link was changed to another claim")
	}
}

func TestReached(t *testing.T) {
	timeline := newTimeline()
	two := map[tallyName]int{machinesPresent: 2}
	timeline.observeMachine(machineVersion("a", ""), false, second(1))
	if _, reached := timeline.reached(two); reached {
		t.Error("two Machines are reached with one")
	}
	timeline.observeMachine(machineVersion("b", ""), false, second(5))
	timeline.observeMachine(machineVersion("b", "c"), false, second(9))
	if at, reached := timeline.reached(two); !reached || at != second(5) {
		t.Errorf("got %v, %t, want the time of the second Machine", at, reached)
	}
	timeline.observeMachine(machineVersion("a", ""), true, second(11))
	timeline.observeMachine(machineVersion("b", ""), true, second(12))
	if at, reached := timeline.reached(map[tallyName]int{machinesPresent: 0}); !reached || at != second(12) {
		t.Errorf("got %v, %t, want the time of the last deletion", at, reached)
	}
}

// What existed before the load is never recorded, and its replicas do not count.
func TestSetAside(t *testing.T) {
	standing := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{UID: "d"}, Spec: clusterv1.MachineDeploymentSpec{Replicas: new(int32(2))}}
	timeline := newTimeline()
	timeline.observeMachineDeployment(standing, false, second(1))
	timeline.observeMachine(machineVersion("m", "c"), false, second(1))
	timeline.observeClaim(versions()[0], false, second(1))
	timeline.setAside()
	timeline.reset()
	timeline.observeMachine(machineVersion("m", "c"), false, second(2))
	timeline.observeClaim(versions()[0], true, second(2))
	if at, reached := timeline.reached(map[tallyName]int{machinesPresent: 0, claimsPresent: 0}); !reached || !at.IsZero() {
		t.Errorf("got %v at %v, want nothing", timeline.counts(), at)
	}
	timeline.observeMachineDeployment(standing, false, second(3))
	standing.Spec.Replicas = new(int32(3))
	timeline.observeMachineDeployment(standing, false, second(4))
	timeline.observeMachine(machineVersion("n", "d"), false, second(5))
	if at, reached := timeline.reached(map[tallyName]int{machinesPresent: 1}); !reached || at != second(5) {
		t.Errorf("got %v at %v, want the Machine of the load", timeline.counts(), at)
	}
	if raised := timeline.raisedTo(1); raised != second(4) {
		t.Errorf("got the first replica of the load at %v, want %v", raised, second(4))
	}
}

func TestClaimWrites(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus) func(*karpv1.NodeClaim) {
		return func(claim *karpv1.NodeClaim) {
			if status == metav1.ConditionTrue {
				claim.StatusConditions().SetTrue(kind)
			} else {
				claim.StatusConditions().SetUnknown(kind)
			}
		}
	}
	resource := func(name string) func(*karpv1.NodeClaim) {
		return func(claim *karpv1.NodeClaim) {
			claim.Annotations = map[string]string{v1alpha1.ScalableResourceAnnotation: name}
		}
	}
	for name, tc := range map[string]struct {
		changes []func(*karpv1.NodeClaim)
		want    claimWrites
	}{
		"core launches":                     {changes: []func(*karpv1.NodeClaim){resource("a"), withID(planner.ProvisionalID("c")), condition(karpv1.ConditionTypeLaunched, metav1.ConditionTrue)}, want: claimWrites{Core: 3}},
		"the Machine has its provider ID":   {changes: []func(*karpv1.NodeClaim){withID(planner.ProvisionalID("c")), withID("sim://m")}, want: claimWrites{Core: 1, Own: 1}},
		"the claim is provisional again":    {changes: []func(*karpv1.NodeClaim){withID("sim://m"), withID(planner.ProvisionalID("c"))}, want: claimWrites{Core: 1, Own: 1}},
		"the claim waits and has a Machine": {changes: []func(*karpv1.NodeClaim){condition(v1alpha1.ConditionMachineAvailable, metav1.ConditionUnknown), condition(v1alpha1.ConditionMachineAvailable, metav1.ConditionTrue)}, want: claimWrites{Own: 2}},
		"another scalable resource":         {changes: []func(*karpv1.NodeClaim){resource("a"), resource("b")}, want: claimWrites{Core: 1, Own: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			timeline := newTimeline()
			for i, claim := range versions(tc.changes...) {
				timeline.observeClaim(claim, false, second(i))
			}
			if diff := cmp.Diff(tc.want, timeline.claimWrites()); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckLinks(t *testing.T) {
	machine := func(name, claim, id string) clusterv1.Machine {
		m := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.NodeClaimUIDLabel: claim}}}
		m.Spec.ProviderID = id
		return m
	}
	claim := func(uid, id string) karpv1.NodeClaim {
		return karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}, Status: karpv1.NodeClaimStatus{ProviderID: id}}
	}
	claims := []karpv1.NodeClaim{claim("c", "sim://m"), claim("d", "sim://n")}
	for name, tc := range map[string]struct {
		machines []clusterv1.Machine
		correct  bool
	}{
		"one for each claim":        {machines: []clusterv1.Machine{machine("m", "c", "sim://m"), machine("n", "d", "sim://n")}, correct: true},
		"a claim without a Machine": {machines: []clusterv1.Machine{machine("m", "c", "sim://m")}},
		"two for one claim":         {machines: []clusterv1.Machine{machine("m", "c", "sim://m"), machine("n", "c", "sim://m")}},
		"a spare one":               {machines: []clusterv1.Machine{machine("m", "c", "sim://m"), machine("n", "", "sim://n")}},
		"the ID of another one":     {machines: []clusterv1.Machine{machine("m", "d", "sim://m"), machine("n", "c", "sim://n")}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := checkLinks(tc.machines, claims); (err == nil) != tc.correct {
				t.Errorf("got %v, want correct: %t", err, tc.correct)
			}
		})
	}
}
