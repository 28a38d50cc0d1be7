// SPDX-License-Identifier: Apache-2.0

package model

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/samber/lo"

	"github.com/karpenter-capi/karpenter-capi/internal/planner"
)

// decideForReal returns the plan of the operator's own code. A wait is over when the provider has
// seen what the operator waits for, or when the operator takes that for true by mistake.
func (w *poolState) decideForReal(o order, made mistakes) poolPlan {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	// passed returns a time since when a wait is over, or else now.
	passed := func(is bool) time.Time { return lo.Ternary(is, now.Add(-time.Hour), now) }
	state := planner.State{
		Now: now, Exists: true, Replicas: int32(w.known),
		Durations: planner.Durations{LaunchTimeout: time.Hour, Settle: time.Second},
		Scaling: planner.Pool{
			ReplicasSetAt: passed(w.replicasSeen == w.known || made.replicas),
			SettlesAt:     passed(w.recovery.age >= o.recovery).Add(time.Second),
		},
	}
	for i := range w.waiting {
		name := "waiting-" + strconv.Itoa(int(i))
		state.Claims = append(state.Claims, planner.Claim{UID: types.UID(name), Name: name, NeedsMachine: true})
	}
	for i, m := range w.machines {
		if m.serves == serving {
			// Only the Machine shows that the claim has it.
			seen := w.seen[i].serves == serving
			state.Claims = append(state.Claims, planner.Claim{UID: claimOf(i), Name: string(claimOf(i)), NeedsMachine: !seen})
		}
	}
	plan := poolPlan{}
	for i, m := range w.seen {
		if !m.machine {
			continue
		}
		lost := m.orphaned()
		machine := planner.Machine{
			Name: strconv.Itoa(i), ResumedAt: now, WasLinked: true, Leaving: m.deleting || m.annotated,
			Marked: m.annotated, Hooked: m.hook, LeavingSince: passed(w.annotated[i] || !w.machines[i].annotated || made.marks[i]),
			InstanceGone: m.going && (m.deleting || m.annotated) || lost,
		}
		if m.serves != spare {
			machine.Claim, machine.HasNode = claimOf(i), true
		}
		state.Machines = append(state.Machines, machine)
		// The reconciler marks Machines that a user deletes, and those without an instance.
		if !m.annotated && (m.deleting && m.hook || lost) {
			plan.choose = append(plan.choose, i)
		}
	}
	decided := planner.Decide(&state)
	plan.replicas = int8(decided.Replicas)
	plan.choose = append(plan.choose, indexes(decided.Marks)...)
	for _, name := range decided.Deletable {
		if i := index(name); !w.seen[i].deleting || w.seen[i].hook {
			plan.letGo = append(plan.letGo, i)
		}
	}
	for _, l := range decided.Links {
		plan.link = append(plan.link, index(l.Machine))
	}
	return plan
}

// claimOf returns the claim of the Machine at an index.
func claimOf(place int) types.UID {
	return types.UID("served-" + strconv.Itoa(place))
}

func indexes(names []string) (all []int) {
	for _, name := range names {
		all = append(all, index(name))
	}
	return all
}

func index(name string) int {
	i, _ := strconv.Atoi(name)
	return i
}
