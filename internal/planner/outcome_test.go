// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"math/rand"
	"slices"
	"testing"
	"testing/quick"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/failure"
)

// randomLaunches returns a state in which launches take as long as they like, fail, stall and are limited.
func randomLaunches(random *rand.Rand) *State {
	sometimes := func() bool { return random.Intn(4) == 0 }
	rarely := func() bool { return random.Intn(16) == 0 }
	at := func() time.Time { return now.Add(-time.Duration(random.Intn(120)) * time.Minute / 2) }
	// soon returns a time at which a short wait begins or ends.
	soon := func() time.Time { return now.Add(time.Duration(random.Intn(240)-120) * time.Second) }
	stall := func() Stall {
		return lo.Ternary(sometimes(), Stall{Reason: lo.Ternary(sometimes(), v1alpha1.ReasonBlocked, v1alpha1.ReasonNoProgress), Message: "waits"}, Stall{})
	}
	state := randomState(random)
	for i := range state.Machines {
		if sometimes() {
			state.Machines[i].InstanceGone = true
		}
	}
	launches := complete(state)
	launches.Durations.LaunchTimeout = 10 * time.Minute
	launches.UpSince, launches.Stall, launches.Exists = at(), stall(), !sometimes()
	launches.ClusterDeleting, launches.Suspended = rarely(), rarely()
	launches.Unusable = lo.Ternary(rarely(), "its provider makes no Machines", "")
	switch random.Intn(3) {
	case 0:
		launches.Scaling = MachineSet{Replicas: launches.Replicas, Blocked: sometimes(), Behind: sometimes(), LoweredAt: lo.Ternary(sometimes(), soon(), time.Time{})}
	case 1:
		launches.Scaling = Pool{Unready: sometimes(), ReplicasSetAt: soon(), SettlesAt: soon()}
	}
	for i := range launches.Machines {
		machine := &launches.Machines[i]
		if machine.Leaving {
			machine.LeavingSince, machine.Marked, machine.Hooked = soon(), sometimes(), sometimes()
		}
		machine.Created, machine.ResumedAt, machine.Stall = at(), time.Time{}, stall()
	}
	for i := range launches.Claims {
		claim := &launches.Claims[i]
		claim.Created, claim.WaitsSince, claim.OverLimit, claim.Stalled = at(), at(), sometimes(), sometimes()
	}
	return launches
}

// hadMachine reports whether a claim has a Machine that is leaving. An event shows when that no longer exists.
func hadMachine(state *State, claim Claim) bool {
	return slices.ContainsFunc(state.Machines, func(m Machine) bool { return m.Claim == claim.UID })
}

// Each claim that needs a Machine gets one, has an outcome or is looked at again without an event. No claim that is stalled
// fails, and none fails while its Cluster ends or its resource is suspended.
func TestNoClaimIsForgotten(t *testing.T) {
	check := func(seed int64) bool {
		state := randomLaunches(rand.New(rand.NewSource(seed)))
		plan := Decide(state)
		for _, claim := range state.Claims {
			outcome, served := plan.Outcomes[claim.UID], plan.Served[claim.UID] != ""
			failed, stalled := outcome.Failure != failure.Failure{}, outcome.Stall != Stall{}
			switch {
			case failed && (stalled || claim.Stalled || state.ClusterDeleting || state.Suspended):
				t.Logf("NodeClaim %s fails: %+v", claim.Name, outcome)
				return false
			case (failed || outcome.Ends) && !claim.NeedsMachine:
				t.Logf("NodeClaim %s, which needs no Machine, ends: %+v", claim.Name, outcome)
				return false
			case outcome.Ends && (served || !state.ClusterDeleting):
				t.Logf("NodeClaim %s ends: %+v", claim.Name, outcome)
				return false
			case plan.Linking.Has(claim.UID) && outcome != Outcome{}:
				t.Logf("NodeClaim %s is about to be linked, and has the outcome %+v", claim.Name, outcome)
				return false
			case plan.Waiting.Has(claim.UID) && (served || outcome == Outcome{} && plan.Due.In == 0 && !hadMachine(state, claim)):
				t.Logf("NodeClaim %s waits, and nobody looks at it again", claim.Name)
				return false
			}
		}
		if plan.Due.In < 0 || (plan.Due.In == 0) != (plan.Due.Why == "") {
			t.Logf("the plan is due: %+v", plan.Due)
			return false
		}
		for _, name := range append(append(append([]string{}, plan.Marks...), plan.Unlinks...), plan.Lost...) {
			if plan.Because[name] == "" {
				t.Logf("Machine %s is removed without a reason", name)
				return false
			}
		}
		return true
	}
	if err := quick.Check(check, &quick.Config{MaxCount: 5000}); err != nil {
		t.Error(err)
	}
}

// Time changes a plan only when it is due: with the same objects, an earlier look decides the same.
func TestNothingChangesBeforeItIsDue(t *testing.T) {
	check := func(seed int64) bool {
		random := rand.New(rand.NewSource(seed))
		state := randomLaunches(random)
		before := Decide(state)
		later := *state
		if before.Due.In == 0 {
			later.Now = state.Now.Add(time.Duration(random.Intn(48)) * time.Hour)
		} else {
			later.Now = state.Now.Add(time.Duration(random.Int63n(int64(before.Due.In))))
		}
		after := Decide(&later)
		before.Due, after.Due = Due{}, Due{}
		if before.LoweredAt != nil && !before.LoweredAt.IsZero() && after.LoweredAt != nil && !after.LoweredAt.IsZero() {
			after.LoweredAt = before.LoweredAt // it is that of the plan
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Logf("after %s (-before +after):\n%s", later.Now.Sub(state.Now), diff)
			return false
		}
		return true
	}
	if err := quick.Check(check, &quick.Config{MaxCount: 5000}); err != nil {
		t.Error(err)
	}
}
