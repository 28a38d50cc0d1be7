// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"slices"

	"github.com/samber/lo"
)

// state returns the input of the planner.
func (w *simulation) state(v snapshot) State {
	state := State{Replicas: v.md.replicas, Unmanaged: int32(w.own), Scaling: w.scaling(v)}
	if w.own > 0 {
		state.UnmanagedUntil = adopted
	}
	for _, c := range v.claims {
		c.NeedsMachine = !c.registered && !c.Leaving
		state.Claims = append(state.Claims, c.Claim)
	}
	for _, m := range v.machines {
		m.Leaving, m.SpareSince = m.leaving(), lo.Ternary(w.step-m.spareSince >= spareSteps, start, now)
		m.InstanceGone = m.InstanceGone && (m.Leaving || w.isOrphan(m))
		m.LeavingSince = lo.Ternary(w.pool != nil && m.Marked && w.providerKnows(m.Name), start, now)
		state.Machines = append(state.Machines, m.Machine)
	}
	return state
}

// scaling returns how replicas become Machines. A settle time of a pool ends when the provider has
// seen the write: that of replicas here, that of a mark in providerKnows.
func (w *simulation) scaling(v snapshot) Scaling {
	if w.pool != nil {
		return Pool{ReplicasSetAt: lo.Ternary(w.history[w.provider.md].md == w.now.md && v.md == w.now.md, start, now)}
	}
	one := MachineSet{}
	if v.md.lowered {
		one.LoweredAt = lo.Ternary(w.step-v.md.loweredAt >= probeSteps, start, now)
	}
	for _, s := range v.sets {
		one.Replicas, one.Behind = s.replicas, s.observed < s.generation
		one.Blocked = s.blocked && s.observed == s.generation && s.replicas == v.md.replicas && int(s.machines) <= len(v.machines)
	}
	return one
}

// providerKnows reports whether the provider has seen that a Machine is marked.
func (w *simulation) providerKnows(name string) bool {
	marked := func(machines []simMachine) bool {
		return slices.ContainsFunc(machines, func(m simMachine) bool { return m.Name == name && m.Marked })
	}
	return marked(w.history[w.provider.machines].machines) || !marked(w.now.machines)
}
