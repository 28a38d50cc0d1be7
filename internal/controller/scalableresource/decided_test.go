// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
)

// decide returns a snapshot with the plan that follows from its claims, its Machines and its state.
func decide(snap *snapshot.Snapshot) *decided {
	state := snap.State
	for i := range snap.Claims {
		state.Claims = append(state.Claims, snapshot.ClaimOf(&snap.Claims[i]))
	}
	for _, machine := range snap.Machines {
		state.Machines = append(state.Machines, snapshot.MachineOf(machine))
	}
	return &decided{Snapshot: snap, Plan: planner.Decide(&state)}
}

// The time at which replicas were lowered is written and removed with them, and nothing else is changed.
func TestScale(t *testing.T) {
	for name, tc := range map[string]struct {
		loweredAt *time.Time
		replicas  int32
		want      map[string]string
	}{
		"the same replicas":   {loweredAt: &time.Time{}, replicas: 3, want: map[string]string{v1alpha1.ReplicasLoweredAtAnnotation: "before", "mine": "x"}},
		"its time stays":      {replicas: 2, want: map[string]string{v1alpha1.ReplicasLoweredAtAnnotation: "before", "mine": "x"}},
		"its time is removed": {loweredAt: &time.Time{}, replicas: 4, want: map[string]string{"mine": "x"}},
		"its time is written": {loweredAt: &now, replicas: 2, want: map[string]string{v1alpha1.ReplicasLoweredAtAnnotation: timestamp.Format(now), "mine": "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			resource := scalable.New(withReplicas(3))
			resource.SetAnnotations(map[string]string{v1alpha1.ReplicasLoweredAtAnnotation: "before", "mine": "x"})
			snap := &decided{Snapshot: &snapshot.Snapshot{State: planner.State{Now: now}}, Plan: planner.Plan{Replicas: tc.replicas, LoweredAt: tc.loweredAt}}
			snap.scale(resource)
			if diff := cmp.Diff(tc.want, resource.GetAnnotations()); diff != "" || resource.Replicas() != tc.replicas {
				t.Errorf("got %d replicas, and annotations (-want +got):\n%s", resource.Replicas(), diff)
			}
		})
	}
}
