// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"strings"
	"testing"
	"time"

	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// While a resource or its MachineSet is being deleted, claims that wait report that, and not that replicas
// could not be set.
func TestEndingResources(t *testing.T) {
	deleted := func(set *clusterv1.MachineSet, machines int32) *clusterv1.MachineSet {
		set.DeletionTimestamp, set.Status.Replicas = new(metav1.NewTime(fixture.Noon)), new(machines)
		return set
	}
	older := func(set *clusterv1.MachineSet) *clusterv1.MachineSet {
		set.Annotations = map[string]string{clusterv1.DisableMachineCreateAnnotation: "true"}
		return set
	}
	other := func(name string) *karpv1.NodeClaim {
		claim := fixture.Claim(time.Hour)
		claim.Name, claim.UID = name, types.UID(name)
		return claim
	}
	deletedDeployment := deployment(2)
	deletedDeployment.DeletionTimestamp = new(metav1.NewTime(fixture.Noon))
	deletedPool := fixture.MachinePool(nil)
	deletedPool.DeletionTimestamp = new(metav1.NewTime(fixture.Noon))
	for name, tc := range map[string]struct {
		resource *scalable.Resource
		sets     []*clusterv1.MachineSet
		machines []*clusterv1.Machine
		ending   bool
		leaving  []string
		replicas int32  // of the plan for three claims
		why      string // a part of the message of a claim that waits
	}{
		"a MachineDeployment": {
			resource: scalable.New(deployment(2)), sets: []*clusterv1.MachineSet{fixture.MachineSet("a", "general", 2)},
			machines: []*clusterv1.Machine{fixture.OwnedBy("m", "a")}, replicas: 4, why: "could not be set to 4",
		},
		"a MachineDeployment that is being deleted": {
			resource: scalable.New(deletedDeployment), sets: []*clusterv1.MachineSet{fixture.MachineSet("a", "general", 2)},
			machines: []*clusterv1.Machine{fixture.OwnedBy("m", "a")}, ending: true, leaving: []string{"m"}, replicas: 3,
			why: "MachineDeployment clusters/general is being deleted",
		},
		"a MachineDeployment that is being deleted, and is empty": {
			resource: scalable.New(deletedDeployment), sets: []*clusterv1.MachineSet{fixture.MachineSet("a", "general", 2)},
			replicas: 3, why: "MachineDeployment clusters/general is being deleted",
		},
		"its MachineSet is being deleted": {
			resource: scalable.New(deployment(2)), sets: []*clusterv1.MachineSet{deleted(fixture.MachineSet("a", "general", 2), 1)},
			machines: []*clusterv1.Machine{fixture.OwnedBy("m", "a")}, ending: true, leaving: []string{"m"}, replicas: 3,
			why: "MachineSet clusters/a is being deleted",
		},
		"its MachineSet is being deleted, and is empty": {
			resource: scalable.New(deployment(2)), sets: []*clusterv1.MachineSet{deleted(fixture.MachineSet("a", "general", 2), 0)},
			replicas: 3, why: "could not be set to 3",
		},
		"an older MachineSet is being deleted": {
			resource: scalable.New(deployment(2)),
			sets:     []*clusterv1.MachineSet{older(deleted(fixture.MachineSet("a", "general", 1), 1)), fixture.MachineSet("b", "general", 1)},
			machines: []*clusterv1.Machine{fixture.OwnedBy("m", "a"), fixture.OwnedBy("n", "b")}, leaving: []string{"m"}, replicas: 4,
			why: "could not be set to 4",
		},
		"a MachinePool that is being deleted, and is empty": {
			resource: scalable.New(deletedPool), why: "MachinePool clusters/pool is being deleted",
		},
		"a MachinePool that is being deleted": {
			resource: scalable.New(deletedPool), machines: []*clusterv1.Machine{fixture.OfPool(fixture.Machine(time.Hour))}, ending: true,
			why: "MachinePool clusters/pool is being deleted",
		},
	} {
		t.Run(name, func(t *testing.T) {
			clusters := fixture.Clusters(lo.Map(tc.sets, func(set *clusterv1.MachineSet, _ int) client.Object {
				set.Finalizers = []string{clusterv1.MachineSetFinalizer}
				return set
			})...)
			s := snapshotOf(t, tc.resource, []*karpv1.NodeClaim{fixture.Claim(time.Hour), other("d"), other("e")}, tc.machines...)
			read := s.readMachineSets
			if tc.sets == nil {
				read = s.readPool
			}
			if err := read(t.Context(), clusters); err != nil {
				t.Fatal(err)
			}
			if s.Ending != tc.ending {
				t.Errorf("ending: %t, want %t", s.Ending, tc.ending)
			}
			for _, m := range s.State.Machines {
				if want := lo.Contains(tc.leaving, m.Name); m.Ending != want {
					t.Errorf("Machine %s is deleted with its MachineSet: %t, want %t", m.Name, m.Ending, want)
				}
			}
			plan := planner.Decide(&s.State)
			// A Machine that is deleted with its MachineSet counts as leaving.
			if plan.Replicas != tc.replicas {
				t.Errorf("got %d replicas, want %d", plan.Replicas, tc.replicas)
			}
			if stall := plan.Outcomes["c"].Stall; !strings.Contains(stall.Message, tc.why) {
				t.Errorf("got %+v, want %q", stall, tc.why)
			}
		})
	}
}
