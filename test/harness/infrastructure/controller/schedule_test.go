// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/property"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 678000, time.UTC)

func delay(duration time.Duration) infrav1.Delay {
	return infrav1.Delay{Duration: metav1.Duration{Duration: duration}}
}

func jittered(duration, jitter time.Duration) infrav1.Delay {
	return infrav1.Delay{Duration: metav1.Duration{Duration: duration}, Jitter: metav1.Duration{Duration: jitter}}
}

func TestScheduleOf(t *testing.T) {
	tests := map[string]struct {
		delays                                 infrav1.Delays
		failure                                *infrav1.Failure
		wantProviderID, wantProvisioned, wantJ time.Duration
		wantFails                              bool
	}{
		"without delays everything is due immediately": {},
		"provisioning takes longer than the provider ID": {
			delays:          infrav1.Delays{Provisioning: delay(5 * time.Second), ProviderID: delay(2 * time.Second), NodeJoin: delay(time.Second)},
			wantProviderID:  2 * time.Second,
			wantProvisioned: 5 * time.Second,
			wantJ:           3 * time.Second,
		},
		"a machine is not provisioned before it has its provider ID": {
			delays:          infrav1.Delays{Provisioning: delay(time.Second), ProviderID: delay(4 * time.Second)},
			wantProviderID:  4 * time.Second,
			wantProvisioned: 4 * time.Second,
			wantJ:           4 * time.Second,
		},
		"a negative delay counts as none": {
			delays: infrav1.Delays{ProviderID: delay(-time.Second), NodeJoin: jittered(0, -time.Second)},
		},
		"all fail":           {failure: &infrav1.Failure{Percent: 100}, wantFails: true},
		"none fails":         {failure: &infrav1.Failure{Percent: 0}},
		"a negative share":   {failure: &infrav1.Failure{Percent: -5}},
		"no failure":         {failure: nil},
		"more than all fail": {failure: &infrav1.Failure{Percent: 250}, wantFails: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			spec := &infrav1.SimulatedMachineSpec{Delays: tc.delays, Failure: tc.failure}
			got := scheduleOf(spec, "uid", epoch)
			want := schedule{
				fails:       tc.wantFails,
				providerID:  epoch.Add(tc.wantProviderID),
				provisioned: epoch.Add(tc.wantProvisioned),
				nodeJoin:    epoch.Add(tc.wantJ),
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(schedule{})); diff != "" {
				t.Errorf("schedule (-want +got):\n%s", diff)
			}
		})
	}
}

func TestScheduleAt(t *testing.T) {
	plan := schedule{
		providerID:  epoch.Add(2 * time.Second),
		provisioned: epoch.Add(5 * time.Second),
		nodeJoin:    epoch.Add(4 * time.Second),
	}
	failing := plan
	failing.fails = true

	tests := map[string]struct {
		schedule schedule
		after    time.Duration
		done     progress
		want     steps
	}{
		"just started": {
			schedule: plan,
			want:     steps{next: 2 * time.Second},
		},
		"a clock that was set back": {
			schedule: plan, after: -time.Minute,
			want: steps{next: time.Minute + 2*time.Second},
		},
		"the provider ID is set alone, even if everything is due": {
			schedule: plan, after: time.Hour,
			want: steps{setProviderID: true},
		},
		"the nearest step is waited for": {
			schedule: plan, after: 2 * time.Second, done: progress{hasProviderID: true},
			want: steps{next: 2 * time.Second},
		},
		"the Node joins before the machine is provisioned": {
			schedule: plan, after: 4 * time.Second, done: progress{hasProviderID: true},
			want: steps{joinNode: true, next: time.Second},
		},
		"everything that is due": {
			schedule: plan, after: time.Hour, done: progress{hasProviderID: true},
			want: steps{reportProvisioned: true, joinNode: true},
		},
		"what is done is not done again": {
			schedule: plan, after: time.Hour, done: progress{hasProviderID: true, provisioned: true},
			want: steps{joinNode: true},
		},
		"nothing is left": {
			schedule: plan, after: time.Hour, done: progress{hasProviderID: true, provisioned: true, joined: true},
			want: steps{},
		},
		"a failure is reported when the provider ID would be set": {
			schedule: failing, after: time.Second,
			want: steps{next: time.Second},
		},
		"a failed instance never recovers": {
			schedule: failing, after: time.Hour,
			want: steps{fail: true},
		},
		"an instance with a provider ID no longer fails": {
			schedule: failing, after: time.Hour, done: progress{hasProviderID: true},
			want: steps{reportProvisioned: true, joinNode: true},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := tc.schedule.at(epoch.Add(tc.after), tc.done)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(steps{})); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

// TestScheduleIsFollowed runs random lives and waits as long as the schedule returns: each reaches its end, step by
// step and never early.
func TestScheduleIsFollowed(t *testing.T) {
	property.Check(t, 2000, func(t *rapid.T) {
		ms := rapid.IntRange(0, math.MaxUint16)
		uid, jitter := rapid.String().Draw(t, "uid"), ms.Draw(t, "jitter")
		of := func(step string) infrav1.Delay {
			return jittered(time.Duration(ms.Draw(t, step))*time.Millisecond, time.Duration(jitter)*time.Millisecond)
		}
		spec := &infrav1.SimulatedMachineSpec{
			Delays:  infrav1.Delays{Provisioning: of("provisioning"), ProviderID: of("providerID"), NodeJoin: of("nodeJoin")},
			Failure: &infrav1.Failure{Percent: rapid.Int32Range(0, 100).Draw(t, "percent")},
		}
		plan, now, done := scheduleOf(spec, types.UID(uid), epoch), epoch, progress{}
		for range 10 {
			due := plan.at(now, done)
			if due.fail {
				if !plan.fails || now.Before(plan.providerID) || due != (steps{fail: true}) || done != (progress{}) {
					t.Fatalf("it fails after %s with %+v, after %+v", now.Sub(epoch), due, done)
				}
				return
			}
			if due.setProviderID {
				if plan.fails || now.Before(plan.providerID) || due.joinNode || due.reportProvisioned {
					t.Fatalf("it gets its provider ID after %s with %+v", now.Sub(epoch), due)
				}
				done.hasProviderID = true
				continue
			}
			if due.reportProvisioned && now.Before(plan.provisioned) || due.joinNode && now.Before(plan.nodeJoin) {
				t.Fatalf("after %s it is too early for %+v", now.Sub(epoch), due)
			}
			done.provisioned = done.provisioned || due.reportProvisioned
			done.joined = done.joined || due.joinNode
			if due.next == 0 {
				if done != (progress{hasProviderID: true, provisioned: true, joined: true}) {
					t.Fatalf("it ends with %+v", done)
				}
				return
			}
			now = now.Add(due.next)
		}
		t.Fatal("it does not end")
	})
}

func TestDelayIsWithinItsJitterAndNeverChanges(t *testing.T) {
	property.Check(t, 2000, func(t *rapid.T) {
		uid, step := rapid.String().Draw(t, "uid"), rapid.String().Draw(t, "step")
		duration, jitter := rapid.Int64().Draw(t, "duration"), rapid.Int64().Draw(t, "jitter")
		d := jittered(time.Duration(duration), time.Duration(jitter))
		got := delayOf(d, types.UID(uid), step)
		if again := delayOf(d, types.UID(uid), step); got != again {
			t.Fatalf("got %d, and then %d", got, again)
		}
		least, most := max(0, duration), max(0, jitter)
		switch {
		case int64(got) < least, most == 0 && int64(got) != least, most > 0 && most <= math.MaxInt64-least && int64(got) >= least+most:
			t.Fatalf("got %d", got)
		}
	})
}

func TestShareIsUniform(t *testing.T) {
	const machines = 20000
	for _, percent := range []uint64{1, 5, 50} {
		failed := 0
		for i := range machines {
			if share(types.UID(fmt.Sprintf("%08x-0000-4000-8000-000000000000", i)), "failure", 100) < percent {
				failed++
			}
		}
		want := machines * int(percent) / 100
		// Five standard deviations and more: sqrt(20000 * 0.5 * 0.5) is 71.
		if failed < want-360 || failed > want+360 || failed == 0 {
			t.Errorf("%d%% of %d machines: %d fail, want about %d", percent, machines, failed, want)
		}
	}
}

func TestJitterDiffersBetweenMachinesAndSteps(t *testing.T) {
	d := jittered(time.Second, time.Hour)
	seen := map[time.Duration]bool{}
	for _, uid := range []types.UID{"a", "b", "c"} {
		for _, step := range []string{"provisioning", "providerID", "nodeJoin", "termination"} {
			seen[delayOf(d, uid, step)] = true
		}
	}
	if len(seen) != 12 {
		t.Errorf("12 machines and steps have %d different delays", len(seen))
	}
}
