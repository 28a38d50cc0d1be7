// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The time at which replicas were lowered because the MachineSet is blocked is written with the lower replicas, and removed
// with higher ones, unless the MachineSet has not acted on the lower ones yet.
func TestLoweredAt(t *testing.T) {
	removed := &time.Time{}
	probed := now.Add(-time.Minute) // a probe is due
	for name, tc := range map[string]struct {
		set      MachineSet
		replicas int32      // of the plan; the resource has 4
		want     *time.Time // nil if the present one stays
	}{
		"lowered because it is blocked":        {set: MachineSet{Blocked: true}, replicas: 3, want: &now},
		"lowered because a Machine leaves":     {replicas: 3, want: removed},
		"raised while it is blocked":           {set: MachineSet{Blocked: true}, replicas: 5, want: removed},
		"lowered again":                        {set: MachineSet{LoweredAt: now}, replicas: 3},
		"lowered again, when a probe is due":   {set: MachineSet{LoweredAt: probed}, replicas: 3},
		"lowered again, and blocked again":     {set: MachineSet{LoweredAt: probed, Blocked: true}, replicas: 3, want: &now},
		"raised, before a probe is due":        {set: MachineSet{LoweredAt: now}, replicas: 5},
		"raised while it is blocked again":     {set: MachineSet{LoweredAt: now, Blocked: true}, replicas: 5, want: removed},
		"raised, and never lowered":            {replicas: 5, want: removed},
		"raised as a probe":                    {set: MachineSet{LoweredAt: probed}, replicas: 5, want: removed},
		"raised, and it has not acted on that": {set: MachineSet{LoweredAt: probed, Behind: true}, replicas: 5},
		"unchanged, which changes no time":     {set: MachineSet{LoweredAt: probed}, replicas: 4},
		"unchanged, while it is blocked":       {set: MachineSet{Blocked: true}, replicas: 4},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlanning(complete(State{Replicas: 4, Scaling: tc.set}))
			p.plan.Replicas = tc.replicas
			p.decideLoweredAt()
			if diff := cmp.Diff(tc.want, p.plan.LoweredAt); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A MachineSet is probed when the time for that has passed since its replicas were lowered, and it has acted on them.
func TestProbes(t *testing.T) {
	probed := now.Add(-time.Minute)
	for name, tc := range map[string]struct {
		set  MachineSet
		want bool
	}{
		"replicas were not lowered":                   {set: MachineSet{Replicas: 4}},
		"lowered now":                                 {set: MachineSet{Replicas: 4, LoweredAt: now}},
		"lowered a moment too late":                   {set: MachineSet{Replicas: 4, LoweredAt: probed.Add(1)}},
		"lowered just long enough ago":                {set: MachineSet{Replicas: 4, LoweredAt: probed}, want: true},
		"and it has even fewer":                       {set: MachineSet{Replicas: 3, LoweredAt: probed}, want: true},
		"lowered an hour ago, which is not passed on": {set: MachineSet{Replicas: 5, LoweredAt: probed}},
		"lowered an hour ago, and not acted on":       {set: MachineSet{Replicas: 4, Behind: true, LoweredAt: probed}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.set.probes(complete(State{Replicas: 4})); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
