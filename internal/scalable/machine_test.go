// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// ofSet returns the Machine of a MachineDeployment.
func ofSet(machine *clusterv1.Machine) *clusterv1.Machine {
	machine.Namespace = "clusters"
	machine.Labels = map[string]string{clusterv1.MachineDeploymentNameLabel: "general"}
	return machine
}

// A Machine of a pool is held from its link on, and when it is chosen: only then can its
// instance not go while replicas still count it.
func TestHoldingMachines(t *testing.T) {
	const drain, terminate = v1alpha1.DrainHookAnnotation, v1alpha1.TerminateHookAnnotation
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "c"}}
	choosing := []string{clusterv1.DeleteMachineAnnotation, v1alpha1.MarkedForDeletionAtAnnotation}
	undrained := []string{clusterv1.ExcludeNodeDrainingAnnotation, clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation}
	link := func(_ *testing.T, _ client.Client, machine *clusterv1.Machine) *clusterv1.Machine {
		return Linked(machine, nil, claim)
	}
	choose := func(drained bool) func(*testing.T, client.Client, *clusterv1.Machine) *clusterv1.Machine {
		return func(t *testing.T, management client.Client, machine *clusterv1.Machine) *clusterv1.Machine {
			t.Helper()
			if err := Mark(t.Context(), management, machine, noon, drained); err != nil {
				t.Fatal(err)
			}
			return fresh(t, management, machine)
		}
	}
	for name, tc := range map[string]struct {
		machine *clusterv1.Machine
		do      func(*testing.T, client.Client, *clusterv1.Machine) *clusterv1.Machine
		want    [][]string // annotations
	}{
		"linked, of a MachineDeployment":             {ofSet(machineOf(time.Minute)), link, [][]string{{v1alpha1.NodeClaimAnnotation, drain}}},
		"linked, of a pool":                          {ofPool(machineOf(time.Minute)), link, [][]string{{v1alpha1.NodeClaimAnnotation, drain, terminate}}},
		"chosen, of a MachineDeployment":             {ofSet(machineOf(time.Minute)), choose(false), [][]string{choosing}},
		"chosen, of a pool":                          {ofPool(machineOf(time.Minute)), choose(false), [][]string{choosing, {terminate}}},
		"chosen and drained, of a MachineDeployment": {ofSet(machineOf(time.Minute)), choose(true), [][]string{choosing, undrained}},
		"chosen and drained, of a pool":              {ofPool(machineOf(time.Minute)), choose(true), [][]string{choosing, undrained, {terminate}}},
	} {
		t.Run(name, func(t *testing.T) {
			management := clustersWith(tc.machine).Management.GetClient()
			got := slices.Sorted(maps.Keys(tc.do(t, management, fresh(t, management, tc.machine)).Annotations))
			want := slices.Sorted(slices.Values(slices.Concat(tc.want...)))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}

// fresh returns a Machine as it is now.
func fresh(t *testing.T, management client.Client, machine *clusterv1.Machine) *clusterv1.Machine {
	t.Helper()
	got := &clusterv1.Machine{}
	if err := management.Get(t.Context(), client.ObjectKeyFromObject(machine), got); err != nil {
		t.Fatal(err)
	}
	return got
}

// A Machine is chosen once: the time from which its waits are counted stays. One that
// has changed since it was read is not.
func TestChooseOnce(t *testing.T) {
	machine := ofPool(machineOf(time.Minute))
	management := clustersWith(machine).Management.GetClient()
	stale := fresh(t, management, machine)
	if err := Mark(t.Context(), management, stale, noon, true); err != nil {
		t.Fatal(err)
	}
	if err := Mark(t.Context(), management, stale, noon.Add(time.Minute), true); !apierrors.IsConflict(err) {
		t.Errorf("a Machine that has changed: got %v, want a conflict", err)
	}
	chosen := fresh(t, management, stale)
	if err := Mark(t.Context(), management, chosen, noon.Add(time.Minute), true); err != nil {
		t.Fatal(err)
	}
	if got := LeavingSince(fresh(t, management, stale), noon.Add(time.Hour)); !got.Equal(noon) {
		t.Errorf("it leaves since %s, want %s", got, noon)
	}
}

func TestHeldUpAndFree(t *testing.T) {
	const drain, terminate = v1alpha1.DrainHookAnnotation, v1alpha1.TerminateHookAnnotation
	for name, tc := range map[string]struct {
		hooks  []string
		node   bool
		heldUp bool
	}{
		"nothing":                              {},
		"a Node without hooks":                 {node: true},
		"a Node with the drain hook":           {hooks: []string{drain}, node: true, heldUp: true},
		"no Node, with the drain hook":         {hooks: []string{drain}},
		"a Node with the terminate hook":       {hooks: []string{terminate}, node: true, heldUp: true},
		"no Node, with the terminate hook":     {hooks: []string{terminate}, heldUp: true},
		"no Node, with both, as one of a pool": {hooks: []string{drain, terminate}, heldUp: true},
	} {
		t.Run(name, func(t *testing.T) {
			machine := ofPool(machineOf(time.Minute))
			machine.Annotations = map[string]string{"mine": "x"}
			for _, hook := range tc.hooks {
				machine.Annotations[hook] = ""
			}
			if tc.node {
				machine.Status.NodeRef.Name = "n"
			}
			if got := WaitsForHook(machine); got != tc.heldUp {
				t.Errorf("held up: got %t", got)
			}
			management := clustersWith(machine).Management.GetClient()
			before := fresh(t, management, machine)
			if err := RemoveHooks(t.Context(), management, before); err != nil {
				t.Fatal(err)
			}
			after := fresh(t, management, machine)
			if diff := cmp.Diff(map[string]string{"mine": "x"}, after.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			if written := after.ResourceVersion != before.ResourceVersion; written != (len(tc.hooks) > 0) {
				t.Errorf("written: %t", written)
			}
		})
	}
}
