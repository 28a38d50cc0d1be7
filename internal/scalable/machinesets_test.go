// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/link"
)

// older returns a MachineSet that is not the current one of its MachineDeployment.
func older(set *clusterv1.MachineSet) *clusterv1.MachineSet {
	metav1.SetMetaDataAnnotation(&set.ObjectMeta, clusterv1.DisableMachineCreateAnnotation, "true")
	return set
}

// ownedBy returns a Machine of a MachineSet.
func ownedBy(name, set string) *clusterv1.Machine {
	return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: "clusters", Name: name, ResourceVersion: "1",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachineSet", Name: set, UID: "uid", Controller: new(true)}},
	}}
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
	unseen := onDelete()
	unseen.Generation = 3
	for scenario, tc := range map[string]struct {
		deployment *clusterv1.MachineDeployment
		sets       sets
		machines   []*clusterv1.Machine
		want       []link.Set // nil if one equation is enough
		unseen     bool
	}{
		"none":                                 {deployment: onDelete()},
		"one":                                  {deployment: onDelete(), sets: sets{machineSet("a", name, 2)}, machines: []*clusterv1.Machine{ownedBy("m", "a")}},
		"an older one that is empty":           {deployment: onDelete(), sets: sets{older(machineSet("a", name, 0)), machineSet("b", name, 2)}, machines: []*clusterv1.Machine{ownedBy("m", "b")}},
		"an older one, with another strategy":  {deployment: rolling, sets: sets{machineSet("a", name, 2), machineSet("b", name, 2)}},
		"an older one with replicas":           {deployment: onDelete(), sets: sets{older(machineSet("a", name, 2)), machineSet("b", name, 1)}, want: []link.Set{{Name: "a", Replicas: 2}, {Name: "b", Replicas: 1, Current: true}}},
		"an older one that has still Machines": {deployment: onDelete(), sets: sets{older(machineSet("a", name, 0)), machineSet("b", name, 1)}, machines: []*clusterv1.Machine{ownedBy("m", "a")}, want: []link.Set{{Name: "a"}, {Name: "b", Replicas: 1, Current: true}}},
		"one that is not known yet":            {deployment: onDelete(), sets: sets{machineSet("a", name, 2)}, machines: []*clusterv1.Machine{ownedBy("m", "b")}, want: []link.Set{{Name: "a", Replicas: 2, Current: true}}},
		"two, of which none is said to be old": {deployment: onDelete(), sets: sets{machineSet("a", name, 2), machineSet("b", name, 0)}, want: []link.Set{{Name: "a", Replicas: 2, Behind: true}, {Name: "b", Behind: true}}},
		"not acted on by the MachineDeployment controller": {deployment: unseen, sets: sets{older(machineSet("a", name, 2)), machineSet("b", name, 1)}, unseen: true,
			want: []link.Set{{Name: "a", Replicas: 2}, {Name: "b", Replicas: 1, Current: true}}},
	} {
		t.Run(scenario, func(t *testing.T) {
			var objects []client.Object
			for _, set := range tc.sets {
				objects = append(objects, set)
			}
			snap := &Snapshot{Name: name, Now: noon, Settings: settings, Resource: resourceOf(machineDeployments{}, tc.deployment), Machines: map[string]*clusterv1.Machine{}}
			for _, machine := range tc.machines {
				snap.Machines[machine.Name] = machine
			}
			if err := (machineDeployments{}).observe(t.Context(), clustersWith(objects...), snap); err != nil {
				t.Fatal(err)
			}
			several, ok := snap.scaling.(link.MachineSets)
			if ok != (tc.want != nil) {
				t.Fatalf("got %+v", snap.scaling)
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

// A Machine that leaves is held until it is let go, and not again after that.
func TestHoldLeaving(t *testing.T) {
	leaving := map[string]string{v1alpha1.MarkedForDeletionAtAnnotation: Timestamp(noon), v1alpha1.DrainHookAnnotation: ""}
	for name, tc := range map[string]struct {
		annotations map[string]string
		deleted     bool
		held        bool
	}{
		"stays":                    {annotations: map[string]string{v1alpha1.DrainHookAnnotation: ""}},
		"marked":                   {annotations: leaving, held: true},
		"marked, without a link":   {annotations: map[string]string{v1alpha1.MarkedForDeletionAtAnnotation: Timestamp(noon)}, held: true},
		"marked and deleted":       {annotations: leaving, deleted: true, held: true},
		"deleted by somebody else": {annotations: map[string]string{v1alpha1.DrainHookAnnotation: ""}, deleted: true, held: true},
		"let go":                   {annotations: map[string]string{v1alpha1.MarkedForDeletionAtAnnotation: Timestamp(noon)}, deleted: true},
	} {
		t.Run(name, func(t *testing.T) {
			machine := ownedBy("m", "a")
			machine.ResourceVersion, machine.Annotations = "", tc.annotations
			if tc.deleted {
				machine.DeletionTimestamp, machine.Finalizers = new(metav1.NewTime(noon)), []string{clusterv1.MachineFinalizer}
			}
			management := clustersWith(machine).Management.GetClient()
			if err := management.Get(t.Context(), client.ObjectKeyFromObject(machine), machine); err != nil {
				t.Fatal(err)
			}
			if err := holdInstance(t.Context(), management, machine); err != nil {
				t.Fatal(err)
			}
			if err := management.Get(t.Context(), client.ObjectKeyFromObject(machine), machine); err != nil {
				t.Fatal(err)
			}
			if HoldsInstance(machine) != tc.held {
				t.Errorf("held: %t, want %t", HoldsInstance(machine), tc.held)
			}
		})
	}
}
