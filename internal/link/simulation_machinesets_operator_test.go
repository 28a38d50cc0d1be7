// SPDX-License-Identifier: Apache-2.0

package link

import (
	"maps"
	"slices"
)

// operate is the operator: links, and the steps of a removal.
func (w *setsWorld) operate() {
	v := w.view(w.operator)
	plan := Decide(w.state(v))
	for _, l := range plan.Links {
		served := slices.ContainsFunc(w.now.machines, func(m setMachine) bool { return m.Claim == l.Claim.UID })
		if m := w.machine(l.Machine); m != nil && m.Claim == "" && !m.Leaving && !served && w.claims[l.Claim.UID] {
			m.Claim = l.Claim.UID
		}
	}
	for _, name := range plan.Removals {
		if m := w.machine(name); m != nil && m.Claim == "" && !m.Leaving {
			m.Chosen, m.Leaving = true, true
			w.tracef("marks spare %s in %s", name, m.set)
		}
	}
	// Replicas as they were when this was decided (scalable.Resource.IsCurrent).
	for _, name := range plan.LetGo {
		if m := w.machine(name); m != nil && w.now.md.replicas == v.md.replicas {
			m.deleting, m.hook = true, false
			w.tracef("lets %s go", name)
		}
	}
	// With a lock on the version of the MachineDeployment, whose status is part of it.
	if plan.Replicas != v.md.replicas && w.now.md == v.md {
		w.tracef("replicas %d, which were %d", plan.Replicas, v.md.replicas)
		w.now.md.replicas = plan.Replicas
		w.now.md.generation++
	}
	w.distribute(v, plan)
	w.wrote()
}

// distribute is scalable.distribute.
func (w *setsWorld) distribute(v snapshot, plan Plan) {
	if plan.Sets == nil {
		return
	}
	for _, seen := range v.machines {
		if m := w.machine(seen.Name); m != nil && seen.Leaving && !seen.Held && !seen.deleting && !m.deleting {
			m.hook = true
		}
	}
	if w.now.md.observed < w.now.md.generation {
		return
	}
	var sum int32
	for _, s := range v.sets {
		sum += s.replicas
	}
	for _, s := range v.sets {
		target := plan.Sets[s.name]
		set := w.set(s.name)
		if target == s.replicas || target > s.replicas && sum-s.replicas+target > w.now.md.replicas {
			continue
		}
		if *set != s {
			return // the lock on its version
		}
		w.tracef("gives %s %d replicas, which had %d", s.name, target, s.replicas)
		set.replicas = target
		set.generation++
		sum += target - s.replicas
	}
}

// state returns what is decided from.
func (w *setsWorld) state(v snapshot) State {
	scaling := MachineSets{Of: map[string]string{}, Observed: v.md.observed >= v.md.generation}
	one := MachineSet{}
	state := State{Replicas: v.md.replicas}
	for _, s := range v.sets {
		scaling.Sets = append(scaling.Sets, Set{Name: s.name, Replicas: s.replicas, Current: s.current, Behind: s.observed < s.generation})
		one.Replicas += s.replicas
		one.Behind = one.Behind || s.observed < s.generation
	}
	if current := slices.DeleteFunc(slices.Clone(scaling.Sets), func(s Set) bool { return !s.Current }); len(current) > 1 {
		for i := range scaling.Sets {
			scaling.Sets[i].Current, scaling.Sets[i].Behind = false, true
		}
	}
	older := false
	for _, m := range v.machines {
		m.Held, m.Expired = m.hook, true
		state.Machines = append(state.Machines, m.Machine)
		scaling.Of[m.Name] = m.set
		older = older || !slices.ContainsFunc(scaling.Sets, func(s Set) bool { return s.Name == m.set && s.Current })
	}
	for i, s := range scaling.Sets {
		older = older || !s.Current && (s.Replicas > 0 || v.sets[i].machines > 0)
	}
	for _, uid := range slices.Sorted(maps.Keys(w.claims)) {
		waiting := !slices.ContainsFunc(w.now.machines, func(m setMachine) bool { return m.Claim == uid && m.Used })
		state.Claims = append(state.Claims, Claim{UID: uid, Name: string(uid), NeedsMachine: waiting})
	}
	if state.Scaling = one; older && !w.oneEquation {
		state.Scaling = scaling
	}
	return state
}
