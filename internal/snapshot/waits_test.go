// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/planner"
)

// A claim that exceeds a limit gets no Machine, so no resource is created for it either.
func TestWaits(t *testing.T) {
	claim := func(uid types.UID) *karpv1.NodeClaim {
		c := &karpv1.NodeClaim{}
		c.UID = uid
		c.StatusConditions().SetTrue(karpv1.ConditionTypeLaunched)
		return c
	}
	snap := &Snapshot{Plan: planner.Plan{Served: map[types.UID]string{"served": "m"}}, exceeding: sets.New[types.UID]("exceeding")}
	for uid, want := range map[types.UID]bool{"waiting": true, "served": false, "exceeding": false} {
		if got := snap.Waits(claim(uid)); got != want {
			t.Errorf("a claim that is %s: got %t, want %t", uid, got, want)
		}
	}
	if snap.Waits(&karpv1.NodeClaim{}) {
		t.Error("a claim that is not launched waits for a Machine")
	}
}
