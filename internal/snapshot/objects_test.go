// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"testing"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/failure"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// snapshotOf returns a snapshot of a resource, its claims and its Machines at Noon, with what they show. Its MachineSets or
// its infrastructure are not read yet. No Machine has failed, and none is stalled.
func snapshotOf(t *testing.T, resource *scalable.Resource, claims []*karpv1.NodeClaim, machines ...*clusterv1.Machine) *Snapshot {
	t.Helper()
	clusters := fixture.Clusters()
	snap := &Snapshot{
		Name: "general", Resource: resource, Settings: durations, State: stateOf(clusters, fixture.Noon),
		Claims:   lo.FromSlicePtr(claims),
		Machines: lo.KeyBy(machines, func(machine *clusterv1.Machine) string { return machine.Name }),
	}
	setSettings(&snap.State, durations)
	if err := snap.setResource(t.Context(), clusters); err != nil {
		t.Fatal(err)
	}
	if err := snap.setClaims(t.Context(), clusters, nil); err != nil {
		t.Fatal(err)
	}
	if err := snap.setMachines(t.Context(), clusters, Known{}); err != nil {
		t.Fatal(err)
	}
	for i := range snap.State.Machines {
		snap.State.Machines[i].Failure, snap.State.Machines[i].Stall = failure.Failure{}, planner.Stall{}
	}
	return snap
}

// stateFrom returns the state of a MachineDeployment that has requested as many Machines as there are claims and Machines.
func stateFrom(t *testing.T, claims []*karpv1.NodeClaim, machines ...*clusterv1.Machine) *planner.State {
	t.Helper()
	return &snapshotOf(t, scalable.New(deployment(int32(len(claims)+len(machines)))), claims, machines...).State
}

// serving links a Machine to a claim.
func serving(machine *clusterv1.Machine, claim types.UID) *clusterv1.Machine {
	if machine.Labels == nil {
		machine.Labels = map[string]string{}
	}
	machine.Labels[v1alpha1.NodeClaimUIDLabel] = string(claim)
	return machine
}

// isUnfit reports whether a plan removes a Machine because no claim can use it.
func isUnfit(plan planner.Plan, machine string) bool {
	why := plan.Because[machine]
	return why == planner.HasFailed || why == planner.TookTooLong
}

// counts returns a MachineSet that reports a number of Machines.
func counts(set *clusterv1.MachineSet, machines int32) *clusterv1.MachineSet {
	set.Status.Replicas = &machines
	return set
}
