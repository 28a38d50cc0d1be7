// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// older returns a MachineSet that is not the current one of its MachineDeployment.
func older(set *clusterv1.MachineSet) *clusterv1.MachineSet {
	metav1.SetMetaDataAnnotation(&set.ObjectMeta, clusterv1.DisableMachineCreateAnnotation, "true")
	return set
}

// counts returns a MachineSet that reports a number of Machines.
func counts(set *clusterv1.MachineSet, machines int32) *clusterv1.MachineSet {
	set.Status.Replicas = &machines
	return set
}

func onDelete() *clusterv1.MachineDeployment {
	deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "general", Generation: 2}}
	deployment.Spec.Rollout.Strategy.Type = clusterv1.OnDeleteMachineDeploymentStrategyType
	deployment.Spec.Replicas = new(int32(3))
	deployment.Status.ObservedGeneration = 2
	return deployment
}

func TestSeveralMachineSets(t *testing.T) {
	const name = "general"
	type sets []*clusterv1.MachineSet
	rolling := onDelete()
	rolling.Spec.Rollout.Strategy.Type = clusterv1.RollingUpdateMachineDeploymentStrategyType
	deleted := func(set *clusterv1.MachineSet) *clusterv1.MachineSet {
		set.DeletionTimestamp, set.Finalizers = new(metav1.NewTime(fixture.Noon)), []string{clusterv1.MachineSetFinalizer}
		return set
	}
	unseen := onDelete()
	unseen.Generation = 3
	for scenario, tc := range map[string]struct {
		deployment *clusterv1.MachineDeployment
		sets       sets
		machines   []*clusterv1.Machine
		want       []planner.Set // nil if one equation is enough
		unseen     bool
	}{
		"none":                                     {deployment: onDelete()},
		"one":                                      {deployment: onDelete(), sets: sets{fixture.MachineSet("a", name, 2)}, machines: []*clusterv1.Machine{fixture.OwnedBy("m", "a")}},
		"an older one that is empty":               {deployment: onDelete(), sets: sets{older(fixture.MachineSet("a", name, 0)), fixture.MachineSet("b", name, 2)}, machines: []*clusterv1.Machine{fixture.OwnedBy("m", "b")}},
		"an older one, with another strategy":      {deployment: rolling, sets: sets{fixture.MachineSet("a", name, 2), fixture.MachineSet("b", name, 2)}},
		"an older one with replicas":               {deployment: onDelete(), sets: sets{older(fixture.MachineSet("a", name, 2)), fixture.MachineSet("b", name, 1)}, want: []planner.Set{{Name: "a", Replicas: 2}, {Name: "b", Replicas: 1, Current: true}}},
		"an older one that still has Machines":     {deployment: onDelete(), sets: sets{older(fixture.MachineSet("a", name, 0)), fixture.MachineSet("b", name, 1)}, machines: []*clusterv1.Machine{fixture.OwnedBy("m", "a")}, want: []planner.Set{{Name: "a"}, {Name: "b", Replicas: 1, Current: true}}},
		"an older one that still counts a Machine": {deployment: onDelete(), sets: sets{counts(older(fixture.MachineSet("a", name, 0)), 1), fixture.MachineSet("b", name, 1)}, machines: []*clusterv1.Machine{fixture.OwnedBy("m", "b")}, want: []planner.Set{{Name: "a"}, {Name: "b", Replicas: 1, Current: true}}},
		"an older one that is behind":              {deployment: onDelete(), sets: sets{notCreated(older(fixture.MachineSet("a", name, 2)), ""), fixture.MachineSet("b", name, 1)}, want: []planner.Set{{Name: "a", Replicas: 2, Behind: true}, {Name: "b", Replicas: 1, Current: true}}},
		"an older one that is being deleted":       {deployment: onDelete(), sets: sets{deleted(notCreated(older(fixture.MachineSet("a", name, 2)), "")), fixture.MachineSet("b", name, 1)}, want: []planner.Set{{Name: "a", Replicas: 2}, {Name: "b", Replicas: 1, Current: true}}},
		"a Machine that none has adopted yet":      {deployment: onDelete(), sets: sets{fixture.MachineSet("a", name, 2)}, machines: []*clusterv1.Machine{fixture.Machine(0)}},
		"none is known yet, and a Machine is":      {deployment: onDelete(), machines: []*clusterv1.Machine{fixture.OwnedBy("m", "a")}},
		"one that is not known yet":                {deployment: onDelete(), sets: sets{fixture.MachineSet("a", name, 2)}, machines: []*clusterv1.Machine{fixture.OwnedBy("m", "b")}, want: []planner.Set{{Name: "a", Replicas: 2, Current: true}}},
		"two, of which none is marked as old":      {deployment: onDelete(), sets: sets{fixture.MachineSet("a", name, 2), fixture.MachineSet("b", name, 0)}, want: []planner.Set{{Name: "a", Replicas: 2, Behind: true}, {Name: "b", Behind: true}}},
		"not acted on by the MachineDeployment controller": {deployment: unseen, sets: sets{older(fixture.MachineSet("a", name, 2)), fixture.MachineSet("b", name, 1)}, unseen: true,
			want: []planner.Set{{Name: "a", Replicas: 2}, {Name: "b", Replicas: 1, Current: true}}},
	} {
		t.Run(scenario, func(t *testing.T) {
			var objects []client.Object
			for _, set := range tc.sets {
				objects = append(objects, set)
			}
			snap := snapshotOf(t, scalable.New(tc.deployment), nil, tc.machines...)
			if err := snap.readMachineSets(t.Context(), fixture.Clusters(objects...)); err != nil {
				t.Fatal(err)
			}
			several, ok := snap.State.Scaling.(planner.MachineSets)
			if ok != (tc.want != nil) {
				t.Fatalf("got %+v", snap.State.Scaling)
			}
			if diff := cmp.Diff(tc.want, several.Sets); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if ok && several.Observed == tc.unseen {
				t.Errorf("observed: %t", several.Observed)
			}
		})
	}
}
