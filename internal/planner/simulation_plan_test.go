// SPDX-License-Identifier: Apache-2.0

package planner

import "slices"

// part is a part of a plan. Links are written by a controller of their own, while the other one goes on, so each part
// has its own pending decisions.
type part int

const (
	links part = iota
	scaling
)

// decision is one write of a plan.
type decision struct {
	of   part
	text string
	// apply writes the decision. It returns false if an object that it depends on has changed.
	apply func() bool
	// version is the version that the plan was made from; negative if the caches were behind.
	version int
}

// decide computes a plan from the operator's caches. The decisions of a part are pending
// until they are applied, in any order. Those of its last plan are dropped.
func (w *simulation) decide(of part) {
	w.actor = "plan"
	w.pending = slices.DeleteFunc(w.pending, func(d decision) bool { return d.of == of })
	if w.blocks {
		// No link is decided before the operator has seen the lower replicas that it has written.
		w.operator.md, w.operator.sets = w.latest(), w.latest()
	}
	c, v, version := w.operator, w.view(w.operator), -1
	if (c == caches{w.latest(), w.latest(), w.latest(), w.latest()}) {
		version = w.latest()
	}
	state := w.state(v)
	if w.bug != nil {
		w.bug(&state)
	}
	plan := decide(state)
	w.checkOrder(state, plan)
	before := len(w.pending)
	add := func(text, name string, apply func() bool) {
		w.pending = append(w.pending, decision{of, text + " " + name, apply, version})
	}
	if of == links {
		w.addLinks(plan, v, add)
	} else {
		w.addScaling(plan, c, v, add)
	}
	decided := w.pending[before:]
	w.random.Shuffle(len(decided), func(i, j int) { decided[i], decided[j] = decided[j], decided[i] })
}

func (w *simulation) addLinks(plan Plan, v snapshot, add func(text, name string, apply func() bool)) {
	for _, l := range plan.Links {
		add("link", l.Machine, func() bool { return w.link(l, v) })
	}
	for _, seen := range v.claims {
		isNew := slices.ContainsFunc(plan.Links, func(l Link) bool { return l.Claim.UID == seen.UID })
		add("identify", seen.Name, func() bool { return w.identify(seen, plan.Served[seen.UID], isNew, v) })
	}
}

func (w *simulation) addScaling(plan Plan, c caches, v snapshot, add func(text, name string, apply func() bool)) {
	for _, name := range plan.Unlinks {
		add("unlink", name, func() bool { return w.release(name, v) })
	}
	for _, name := range plan.Spares {
		if seen := find(v.machines, func(m simMachine) bool { return m.Name == name }); seen.HasNode && !seen.WasLinked {
			add("note", name, func() bool { return w.note(name, v) })
		}
	}
	for _, name := range slices.Concat(plan.Marks, plan.Lost) {
		add("mark", name, func() bool { return w.mark(name, v) })
	}
	for _, name := range plan.Deletable {
		add("delete", name, func() bool { return w.letGo(name, v) })
	}
	if plan.Replicas != v.md.replicas {
		add("scale", "", func() bool { return w.scale(plan.Replicas, c, v) })
	}
	for _, seen := range v.machines {
		// Not in the plan: a Machine that a user deletes is also marked.
		if seen.leaving() && !seen.Marked {
			add("hold", seen.Name, func() bool { return w.hold(seen) })
		}
	}
}

// applyOne applies a pending decision. A decision of a plan that was made from the latest version
// must be possible.
func (w *simulation) applyOne(i int) {
	d := w.pending[i]
	w.pending = slices.Delete(w.pending, i, i+1)
	w.actor = d.text
	if !d.apply() && d.version == w.latest() {
		w.fail("is planned, and must not be done")
	}
	w.wrote()
}

// checkOrder checks that the oldest claims get the oldest Machines.
func (w *simulation) checkOrder(state State, plan Plan) {
	var last Claim
	var lastMachine Machine
	for _, l := range plan.Links {
		m := find(state.Machines, func(m Machine) bool { return m.Name == l.Machine })
		if m.ProviderID != "" && m.ProviderID == l.Claim.ProviderID {
			continue // a link that is restored
		}
		if l.Claim.Created.Before(last.Created) || m.Created.Before(lastMachine.Created) {
			w.fail("links %s to %s before %s to %s", lastMachine.Name, last.Name, m.Name, l.Claim.Name)
		}
		last, lastMachine = l.Claim, *m
	}
	for _, c := range state.Claims {
		if c.NeedsMachine && plan.Served[c.UID] == "" && c.Created.Before(last.Created) {
			w.fail("links %s to %s while the older %s waits", lastMachine.Name, last.Name, c.Name)
		}
	}
}

// asSeen returns a Machine if it has not changed since it was seen, and nil if it has.
func (w *simulation) asSeen(name string, v snapshot) *simMachine {
	seen := find(v.machines, func(m simMachine) bool { return m.Name == name })
	if m := w.machine(name); m != nil && *m == *seen {
		return m
	}
	return nil
}

func (w *simulation) link(l Link, v snapshot) bool {
	m, c := w.asSeen(l.Machine, v), w.claim(l.Claim.UID)
	hasOther := slices.ContainsFunc(w.now.machines, func(m simMachine) bool { return m.Claim == l.Claim.UID && !m.leaving() && !w.isOrphan(m) })
	if m == nil || c == nil || c.Leaving || hasOther && !w.forgets || w.blocks && w.now.md != v.md {
		return false
	}
	if isRestored := m.ProviderID == c.ProviderID; m.Claim != "" || m.leaving() || m.HasNode && !isRestored || m.unfit() || isOwn(*m) {
		w.fail("Machine %+v is linked to claim %s", *m, c.UID)
	}
	m.Claim, m.WasLinked, m.drain, m.Hooked = c.UID, false, true, w.pool != nil
	return true
}

func (w *simulation) release(name string, v snapshot) bool {
	m := w.asSeen(name, v)
	if m == nil || w.serves(*m) {
		return false
	}
	if m.HasNode || m.unfit() {
		w.fail("Machine %+v is unlinked", *m)
	}
	m.Claim, m.WasLinked, m.spareSince = "", true, w.step
	return true
}

// note writes since when a Machine with a Node is spare.
func (w *simulation) note(name string, v snapshot) bool {
	m := w.asSeen(name, v)
	if m == nil || m.leaving() || m.Claim != "" {
		return false
	}
	m.WasLinked = true
	return true
}

// mark marks a Machine for deletion.
func (w *simulation) mark(name string, v snapshot) bool {
	m := w.asSeen(name, v)
	if m == nil || w.serves(*m) {
		return false
	}
	if isOwn(*m) {
		w.fail("Machine %s is unmanaged", name)
	}
	m.Marked, m.Hooked = true, m.Hooked || w.pool != nil
	return true
}

func (w *simulation) hold(seen simMachine) bool {
	m := w.machine(seen.Name)
	if m == nil || *m != seen {
		return false
	}
	m.Marked = m.Marked || m.Hooked || m.drain && m.HasNode
	return true
}

// letGo deletes a marked Machine and removes its hooks.
func (w *simulation) letGo(name string, v snapshot) bool {
	if w.now.md.replicas != v.md.replicas || w.now.md.since != v.md.since {
		return false
	}
	if m := w.machine(name); m != nil {
		if !m.Marked {
			w.fail("Machine %s is not marked, and is deleted", name)
		}
		if w.isUncounted() {
			w.lost[name] = true
		}
		m.deleting, m.Hooked, m.drain = true, false, false
	}
	return true
}

// isUncounted reports whether replicas count no leaving Machine, so that none is replaced.
func (w *simulation) isUncounted() bool {
	needed, sets := w.own, int32(0)
	for _, m := range w.now.machines {
		if !m.leaving() {
			needed++
		}
	}
	for _, c := range w.now.claims {
		if !c.Leaving && !slices.ContainsFunc(w.now.machines, func(m simMachine) bool { return m.Claim == c.UID && !m.leaving() }) {
			needed++
		}
	}
	for _, s := range w.now.sets {
		if sets += s.replicas; s.observed < s.generation {
			return false
		}
	}
	return int(max(sets, w.now.md.replicas)) <= needed
}

func (w *simulation) scale(replicas int32, c caches, v snapshot) bool {
	set, _ := w.scaling(v).(MachineSet)
	md, lowered := &w.now.md, set.Blocked && replicas < v.md.replicas
	// The plan counts a Machine as linked as soon as its link is asked for.
	linked := func(m simMachine) bool {
		return m.Claim != "" && !slices.ContainsFunc(v.machines, func(seen simMachine) bool { return seen.Name == m.Name && seen.Claim != "" })
	}
	if *md != v.md || lowered && slices.ContainsFunc(w.now.machines, linked) {
		return false
	}
	switch {
	case lowered:
		md.lowered, md.loweredAt = true, w.step
	case set.lowered() && replicas < md.replicas:
	case set.Blocked || !set.lowered() || set.probes(complete(w.state(v))):
		md.lowered = false
	}
	if md.decidedFrom = c.machines; w.isPassedOn() {
		md.countedFrom = c.machines
	}
	md.countedFrom = min(md.countedFrom, c.machines)
	md.replicas, md.since, md.generation = replicas, w.step, md.generation+1
	return true
}

// isPassedOn reports whether the MachineSets, or the provider of the pool, have the replicas.
func (w *simulation) isPassedOn() bool {
	sum := int32(0)
	for _, s := range w.now.sets {
		sum += s.replicas
	}
	return w.pool != nil && w.history[w.provider.md].md == w.now.md || w.pool == nil && sum == w.now.md.replicas
}

// identify gives a claim the provider ID of the Machine that serves it. If the link is new, it must be
// written first.
func (w *simulation) identify(seen simClaim, serves string, isNew bool, v snapshot) bool {
	c, m := w.claim(seen.UID), find(v.machines, func(m simMachine) bool { return m.Name == serves })
	id := ProvisionalID(seen.UID)
	switch {
	case c == nil || *c != seen || c.Leaving || m == nil && c.registered:
		return true
	case m != nil && isNew && (w.machine(serves) == nil || w.machine(serves).Claim != c.UID):
		return true
	case m != nil && m.ProviderID != "":
		id = m.ProviderID
	}
	if !slices.ContainsFunc(w.now.claims, func(other simClaim) bool { return other.ProviderID == id }) {
		c.ProviderID = id
	}
	return true
}
