// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// A Machine of a pool has the pre-terminate hook from its link or its mark on. Without the hook, its
// instance could be deleted while replicas still count it.
func TestHoldingMachines(t *testing.T) {
	const drain, terminate = v1alpha1.DrainHookAnnotation, v1alpha1.TerminateHookAnnotation
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "c"}}
	choosing := []string{clusterv1.DeleteMachineAnnotation, v1alpha1.MarkedForDeletionAtAnnotation}
	undrained := []string{clusterv1.ExcludeNodeDrainingAnnotation, clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation}
	link := func(t *testing.T, management client.Client, machine *clusterv1.Machine) *clusterv1.Machine {
		t.Helper()
		linked, err := lifecycle.Link(t.Context(), management, machine, claim, nil)
		if err != nil {
			t.Fatal(err)
		}
		return linked
	}
	choose := func(drained bool) func(*testing.T, client.Client, *clusterv1.Machine) *clusterv1.Machine {
		return func(t *testing.T, management client.Client, machine *clusterv1.Machine) *clusterv1.Machine {
			t.Helper()
			if err := lifecycle.Mark(t.Context(), management, machine, fixture.Noon, drained); err != nil {
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
		"linked, of a MachineDeployment":             {fixture.OfMachineDeployment(fixture.Machine(time.Minute)), link, [][]string{{v1alpha1.NodeClaimAnnotation, drain}}},
		"linked, of a pool":                          {fixture.OfPool(fixture.Machine(time.Minute)), link, [][]string{{v1alpha1.NodeClaimAnnotation, drain, terminate}}},
		"marked, of a MachineDeployment":             {fixture.OfMachineDeployment(fixture.Machine(time.Minute)), choose(false), [][]string{choosing}},
		"marked, of a pool":                          {fixture.OfPool(fixture.Machine(time.Minute)), choose(false), [][]string{choosing, {terminate}}},
		"marked and drained, of a MachineDeployment": {fixture.OfMachineDeployment(fixture.Machine(time.Minute)), choose(true), [][]string{choosing, undrained}},
		"marked and drained, of a pool":              {fixture.OfPool(fixture.Machine(time.Minute)), choose(true), [][]string{choosing, undrained, {terminate}}},
	} {
		t.Run(name, func(t *testing.T) {
			management := fixture.Clusters(tc.machine).Management.GetClient()
			got := slices.Sorted(maps.Keys(tc.do(t, management, fresh(t, management, tc.machine)).Annotations))
			want := slices.Sorted(slices.Values(slices.Concat(tc.want...)))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}

// fresh returns a Machine as the API server has it.
func fresh(t *testing.T, management client.Client, machine *clusterv1.Machine) *clusterv1.Machine {
	t.Helper()
	got := &clusterv1.Machine{}
	if err := management.Get(t.Context(), client.ObjectKeyFromObject(machine), got); err != nil {
		t.Fatal(err)
	}
	return got
}

// A Machine is marked once, and the time from which its waits count stays. A Machine that has changed
// since it was read is not marked.
func TestMarkOnce(t *testing.T) {
	machine := fixture.OfPool(fixture.Machine(time.Minute))
	management := fixture.Clusters(machine).Management.GetClient()
	stale := fresh(t, management, machine)
	if err := lifecycle.Mark(t.Context(), management, stale, fixture.Noon, true); err != nil {
		t.Fatal(err)
	}
	if err := lifecycle.Mark(t.Context(), management, stale, fixture.Noon.Add(time.Minute), true); !apierrors.IsConflict(err) {
		t.Errorf("a Machine that has changed: got %v, want a conflict", err)
	}
	marked := fresh(t, management, stale)
	if err := lifecycle.Mark(t.Context(), management, marked, fixture.Noon.Add(time.Minute), true); err != nil {
		t.Fatal(err)
	}
	if got := lifecycle.LeavingSince(fresh(t, management, stale), fixture.Noon.Add(time.Hour)); !got.Equal(fixture.Noon) {
		t.Errorf("it leaves since %s, want %s", got, fixture.Noon)
	}
}

func TestHooks(t *testing.T) {
	const drain, terminate = v1alpha1.DrainHookAnnotation, v1alpha1.TerminateHookAnnotation
	for name, tc := range map[string]struct {
		hooks []string
		node  bool
		waits bool
	}{
		"nothing":                              {},
		"a Node without hooks":                 {node: true},
		"a Node with the drain hook":           {hooks: []string{drain}, node: true, waits: true},
		"no Node, with the drain hook":         {hooks: []string{drain}},
		"a Node with the terminate hook":       {hooks: []string{terminate}, node: true, waits: true},
		"no Node, with the terminate hook":     {hooks: []string{terminate}, waits: true},
		"no Node, with both, as one of a pool": {hooks: []string{drain, terminate}, waits: true},
	} {
		t.Run(name, func(t *testing.T) {
			machine := fixture.OfPool(fixture.Machine(time.Minute))
			machine.Annotations = map[string]string{"mine": "x"}
			for _, hook := range tc.hooks {
				machine.Annotations[hook] = ""
			}
			if tc.node {
				machine.Status.NodeRef.Name = "n"
			}
			if got := lifecycle.WaitsForHook(machine); got != tc.waits {
				t.Errorf("blocked by a hook: got %t", got)
			}
			management := fixture.Clusters(machine).Management.GetClient()
			before := fresh(t, management, machine)
			if err := lifecycle.RemoveHooks(t.Context(), management, before); err != nil {
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

// The Machine of a claim is known by its provider ID and, after a provider has changed that, by its Node. A Machine and a
// claim that both have none are not each other's.
func TestMachineOfAClaim(t *testing.T) {
	for name, tc := range map[string]struct {
		id, node           string // of the Machine
		claimID, claimNode string
		ofNode, want       bool
	}{
		"both have nothing":          {},
		"the ID":                     {id: "sim://m", claimID: "sim://m", want: true},
		"another ID":                 {id: "sim://m", claimID: "sim://n"},
		"another ID, and the Node":   {id: "sim://m", node: "n", claimID: "sim://n", claimNode: "n", ofNode: true, want: true},
		"another ID and Node":        {id: "sim://m", node: "m", claimID: "sim://n", claimNode: "n"},
		"no ID of the Machine":       {claimID: "sim://m", claimNode: "n"},
		"no Node of the claim":       {node: "n"},
		"the ID, and no Node":        {id: "sim://m", claimID: "sim://m", claimNode: "n", want: true},
		"the ID, and another Node":   {id: "sim://m", node: "m", claimID: "sim://m", claimNode: "n", want: true},
		"the Node, and no ID at all": {node: "n", claimNode: "n", ofNode: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			machine, claim := fixture.Machine(time.Minute), fixture.Claim(time.Minute)
			machine.Spec.ProviderID, machine.Status.NodeRef.Name = tc.id, tc.node
			claim.Status.ProviderID, claim.Status.NodeName = tc.claimID, tc.claimNode
			if got := lifecycle.HasNodeOf(machine, claim); got != tc.ofNode {
				t.Errorf("it has the Node of the claim: %t, want %t", got, tc.ofNode)
			}
			if got := lifecycle.HasIDOrNodeOf(machine, claim); got != tc.want {
				t.Errorf("it is the Machine of the claim: %t, want %t", got, tc.want)
			}
		})
	}
}

// Lists of linked Machines have those of one claim, or those of all claims, and no spare ones.
func TestListOfLinkedMachines(t *testing.T) {
	var objects []client.Object
	for name, claim := range map[string]string{"a": "c", "b": "c", "d": "other", "spare": ""} {
		machine := fixture.OfMachineDeployment(fixture.Machine(time.Minute))
		machine.Name = name
		if claim != "" {
			machine.Labels[v1alpha1.NodeClaimUIDLabel] = claim
		}
		objects = append(objects, machine)
	}
	management := fixture.Clusters(objects...).Management.GetClient()
	for name, tc := range map[string]struct {
		option client.ListOption
		want   []string
	}{
		"one claim": {lifecycle.LinkedTo("c"), []string{"a", "b"}},
		"any claim": {lifecycle.LinkedToAny(), []string{"a", "b", "d"}},
	} {
		machines := &clusterv1.MachineList{}
		if err := management.List(t.Context(), machines, tc.option); err != nil {
			t.Fatal(err)
		}
		got := lo.Map(machines.Items, func(m clusterv1.Machine, _ int) string { return m.Name })
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("linked to %s (-want +got):\n%s", name, diff)
		}
	}
}
