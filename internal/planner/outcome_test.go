// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/karpenter-capi/karpenter-capi/internal/failure"
	"github.com/karpenter-capi/karpenter-capi/test/harness/property"
)

// hadMachine reports whether a claim has a Machine that is leaving. An event shows when that no longer exists.
func hadMachine(state *State, claim Claim) bool {
	return slices.ContainsFunc(state.Machines, func(m Machine) bool { return m.Claim == claim.UID })
}

// Each claim that needs a Machine gets one, has an outcome or is looked at again without an event. No claim that is stalled
// fails, and none fails while its Cluster ends or its resource is suspended.
func TestNoClaimIsForgotten(t *testing.T) {
	property.Check(t, 5000, func(t *rapid.T) {
		state := randomLaunches.Draw(t, "state")
		plan := Decide(state)
		for _, claim := range state.Claims {
			outcome, served := plan.Outcomes[claim.UID], plan.Served[claim.UID] != ""
			failed, stalled := outcome.Failure != failure.Failure{}, outcome.Stall != Stall{}
			switch {
			case failed && (stalled || claim.Stalled || state.ClusterDeleting || state.Suspended):
				t.Fatalf("NodeClaim %s fails: %+v", claim.Name, outcome)
			case (failed || outcome.Ends) && !claim.NeedsMachine:
				t.Fatalf("NodeClaim %s, which needs no Machine, ends: %+v", claim.Name, outcome)
			case outcome.Ends && (served || !state.ClusterDeleting):
				t.Fatalf("NodeClaim %s ends: %+v", claim.Name, outcome)
			case plan.Linking.Has(claim.UID) && outcome != Outcome{}:
				t.Fatalf("NodeClaim %s is about to be linked, and has the outcome %+v", claim.Name, outcome)
			case plan.Waiting.Has(claim.UID) && (served || outcome == Outcome{} && plan.Due.In == 0 && !hadMachine(state, claim)):
				t.Fatalf("NodeClaim %s waits, and nobody looks at it again", claim.Name)
			}
		}
		if plan.Due.In < 0 || (plan.Due.In == 0) != (plan.Due.Why == "") {
			t.Fatalf("the plan is due: %+v", plan.Due)
		}
		for _, name := range append(append(append([]string{}, plan.Marks...), plan.Unlinks...), plan.Lost...) {
			if plan.Because[name] == "" {
				t.Fatalf("Machine %s is removed without a reason", name)
			}
		}
	})
}

// Time changes a plan only when it is due: with the same objects, an earlier look decides the same.
func TestNothingChangesBeforeItIsDue(t *testing.T) {
	property.Check(t, 5000, func(t *rapid.T) {
		state := randomLaunches.Draw(t, "state")
		before := Decide(state)
		later := *state
		if before.Due.In == 0 {
			later.Now = state.Now.Add(time.Duration(rapid.IntRange(0, 47).Draw(t, "hours later")) * time.Hour)
		} else {
			percent := rapid.IntRange(0, 100).Draw(t, "percent of the time until it is due")
			later.Now = state.Now.Add((before.Due.In - 1) * time.Duration(percent) / 100)
		}
		after := Decide(&later)
		before.Due, after.Due = Due{}, Due{}
		if before.LoweredAt != nil && !before.LoweredAt.IsZero() && after.LoweredAt != nil && !after.LoweredAt.IsZero() {
			after.LoweredAt = before.LoweredAt // it is that of the plan
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Fatalf("after %s (-before +after):\n%s", later.Now.Sub(state.Now), diff)
		}
	})
}
