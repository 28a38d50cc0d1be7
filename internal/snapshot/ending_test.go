// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"strings"
	"testing"
	"time"

	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/test/fixture"
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
	deletedDeployment := deployment(2)
	deletedDeployment.DeletionTimestamp = new(metav1.NewTime(fixture.Noon))
	deletedPool := fixture.MachinePool(nil)
	deletedPool.DeletionTimestamp = new(metav1.NewTime(fixture.Noon))
	for name, tc := range map[string]struct {
		resource *scalable.Resource
		sets     []*clusterv1.MachineSet
		machines map[string]*clusterv1.Machine
		ending   bool
		leaving  []string
		why      string // a part of the message of a claim that waits
	}{
		"a MachineDeployment": {
			resource: scalable.New(deployment(2)), sets: []*clusterv1.MachineSet{fixture.MachineSet("a", "general", 2)},
			machines: map[string]*clusterv1.Machine{"m": fixture.OwnedBy("m", "a")}, why: "could not be set to 3",
		},
		"a MachineDeployment that is being deleted": {
			resource: scalable.New(deletedDeployment), sets: []*clusterv1.MachineSet{fixture.MachineSet("a", "general", 2)},
			machines: map[string]*clusterv1.Machine{"m": fixture.OwnedBy("m", "a")}, ending: true, leaving: []string{"m"},
			why: "MachineDeployment clusters/general is being deleted",
		},
		"a MachineDeployment that is being deleted, and is empty": {
			resource: scalable.New(deletedDeployment), sets: []*clusterv1.MachineSet{fixture.MachineSet("a", "general", 2)},
			why: "MachineDeployment clusters/general is being deleted",
		},
		"its MachineSet is being deleted": {
			resource: scalable.New(deployment(2)), sets: []*clusterv1.MachineSet{deleted(fixture.MachineSet("a", "general", 2), 1)},
			machines: map[string]*clusterv1.Machine{"m": fixture.OwnedBy("m", "a")}, ending: true, leaving: []string{"m"},
			why: "MachineSet clusters/a is being deleted",
		},
		"its MachineSet is being deleted, and is empty": {
			resource: scalable.New(deployment(2)), sets: []*clusterv1.MachineSet{deleted(fixture.MachineSet("a", "general", 2), 0)},
			why: "could not be set to 3",
		},
		"an older MachineSet is being deleted": {
			resource: scalable.New(deployment(2)),
			sets:     []*clusterv1.MachineSet{older(deleted(fixture.MachineSet("a", "general", 1), 1)), fixture.MachineSet("b", "general", 1)},
			machines: map[string]*clusterv1.Machine{"m": fixture.OwnedBy("m", "a"), "n": fixture.OwnedBy("n", "b")}, leaving: []string{"m"},
			why: "could not be set to 3",
		},
		"a MachinePool that is being deleted, and is empty": {
			resource: scalable.New(deletedPool), why: "MachinePool clusters/pool is being deleted",
		},
		"a MachinePool that is being deleted": {
			resource: scalable.New(deletedPool), machines: map[string]*clusterv1.Machine{"m": fixture.OfPool(fixture.Machine(time.Hour))}, ending: true,
			why: "MachinePool clusters/pool is being deleted",
		},
	} {
		t.Run(name, func(t *testing.T) {
			clusters := fixture.Clusters(lo.Map(tc.sets, func(set *clusterv1.MachineSet, _ int) client.Object {
				set.Finalizers = []string{clusterv1.MachineSetFinalizer}
				return set
			})...)
			s := &Snapshot{Name: tc.resource.GetName(), Now: fixture.Noon, Settings: durations, Resource: tc.resource, Machines: tc.machines, instanceGone: map[string]bool{}}
			load := s.loadMachineSets
			if tc.sets == nil {
				load = s.loadPool
			}
			if err := load(t.Context(), clusters); err != nil {
				t.Fatal(err)
			}
			if s.Ending != tc.ending {
				t.Errorf("ending: %t, want %t", s.Ending, tc.ending)
			}
			for name := range tc.machines {
				if got, want := s.endingMachines[name], lo.Contains(tc.leaving, name); got != want {
					t.Errorf("Machine %s is deleted with its MachineSet: %t, want %t", name, got, want)
				}
			}
			for _, m := range s.state().Machines {
				if want := lo.Contains(tc.leaving, m.Name); m.Leaving != want || m.Ending != want {
					t.Errorf("the planner gets that Machine %s leaves: %t, with its MachineSet: %t, want %t", m.Name, m.Leaving, m.Ending, want)
				}
			}
			s.Plan = planner.Plan{Replicas: 3}
			if stall := s.whyStalled(fixture.Claim(time.Hour)); stall == nil || !strings.Contains(stall.Message, tc.why) {
				t.Errorf("got %+v, want %q", stall, tc.why)
			}
		})
	}
}
