// SPDX-License-Identifier: Apache-2.0

package link

import "slices"

// observed is scalable.Observe for one of our reconcilers.
func (w *world) observed(actor int) (claims []simClaim, machines map[string]simMachine, plan Plan) {
	if actor == linker && w.blocks && !w.laggingLinker {
		w.views[linker].md, w.views[linker].ms = w.md.latest(), w.ms.latest()
	}
	v := w.views[actor]
	state := State{Replicas: w.md[v.md].replicas, Own: int32(w.own), Scaling: w.scaling(v)}
	if w.own > 0 {
		state.Adopted = adopted
	}
	claims, machines = w.claims[v.claims], map[string]simMachine{}
	for _, c := range claims {
		state.Claims = append(state.Claims, c.forDecide())
	}
	for _, m := range w.machines[v.machines] {
		state.Machines = append(state.Machines, w.forDecide(m))
		machines[m.Name] = m
	}
	return claims, machines, Decide(state)
}

// link is the nodeclaim controller.
func (w *world) link() {
	claims, machines, plan := w.observed(linker)
	for _, l := range plan.Links {
		if w.crashed() {
			return
		}
		if live, found := w.claim(l.Claim.UID); !found || live.deleting {
			return // the cache is behind
		}
		linked := w.updateMachine(l.Machine, machines[l.Machine].version, func(m *simMachine) {
			if claim, serves := w.serves(*m); serves && claim != l.Claim.UID {
				w.fail("Machine %s serves live claim %s and is linked to claim %s", m.Name, claim, l.Claim.UID)
			}
			if m.deleting || m.chosen || m.Used && m.Claim != "" || m.Unfit {
				w.fail("Machine %s, leaving, used or failed, is linked to claim %s", m.Name, l.Claim.UID)
			}
			if isOwn(*m) {
				w.fail("Machine %s was there before, and is linked to claim %s", m.Name, l.Claim.UID)
			}
			m.Claim, m.claimName, m.Released, m.hook = l.Claim.UID, l.Claim.Name, false, true
		})
		if !linked {
			return // the cache is behind
		}
	}
	for _, c := range claims {
		want := w.wantProviderID(c, machines, plan)
		if want == c.providerID || slices.ContainsFunc(claims, func(other simClaim) bool { return other.uid != c.uid && other.providerID == want }) {
			continue
		}
		if w.crashed() {
			return
		}
		w.updateClaim(c.uid, c.version, func(c *simClaim) { c.providerID = want })
	}
	for _, c := range claims {
		served, isServed := machines[plan.Served[c.uid]]
		failed := isServed && served.Unfit && c.launched && !c.registered
		if (failed || w.lost(c, machines)) && !c.deleting && !w.crashed() {
			w.deleteClaim(c.uid)
		}
	}
}

// lost is lost of the nodeclaim controller.
func (w *world) lost(c simClaim, machines map[string]simMachine) bool {
	for _, m := range machines {
		if c.registered && m.Claim == c.uid && m.ProviderID == c.providerID && m.deleting {
			return true
		}
	}
	return false
}

// wantProviderID is providerID of the nodeclaim controller.
func (w *world) wantProviderID(c simClaim, machines map[string]simMachine, plan Plan) string {
	if !c.launched || c.deleting {
		return c.providerID
	}
	if name, served := plan.Served[c.uid]; served {
		if id := machines[name].ProviderID; id != "" {
			return id
		}
		return ProvisionalID(c.uid)
	}
	if !c.registered {
		return ProvisionalID(c.uid)
	}
	return c.providerID
}

// scale is the scalableresource controller.
func (w *world) scale() {
	v := w.views[scaler]
	claims, machines, plan := w.observed(scaler)
	for _, name := range plan.Removals {
		if !w.servesAfterAll(plan, machines[name]) {
			w.choose(machines[name])
		}
	}
	for _, name := range plan.Releases {
		if !w.servesAfterAll(plan, machines[name]) {
			w.release(machines[name])
		}
	}
	for _, m := range w.machines[v.machines] { // in order, not as in a map
		switch {
		case slices.Contains(plan.LetGo, m.Name):
			w.letGo(m)
		case m.deleting && !m.chosen && m.hook && (m.Used || w.pool != nil):
			w.chooseDeleted(m, claims, plan)
		}
	}
	if w.crashed() || v.md != w.md.latest() { // the lock on the MachineDeployment's version
		return
	}
	md := &w.md[w.md.latest()]
	if plan.Replicas != md.replicas {
		set, _ := w.scaling(v).(MachineSet)
		lowered := set.Blocked && plan.Replicas < md.replicas
		w.md = append(w.md, simReplicas{replicas: plan.Replicas, lowered: lowered, since: w.step})
		md = &w.md[w.md.latest()]
		w.wrote()
		w.tracef("replicas %d, decided from version %d of the Machines, which are at %d", plan.Replicas, v.machines, w.machines.latest())
	}
	md.decidedFrom = v.machines
}

// letGo deletes a chosen Machine and takes its hook away.
func (w *world) letGo(m simMachine) {
	if !m.deleting && !w.crashed() {
		w.updateMachine(m.Name, 0, func(now *simMachine) { now.deleting = true })
	}
	if m.hook && !w.crashed() {
		w.updateMachine(m.Name, 0, func(now *simMachine) { now.hook = false })
	}
}

// chooseDeleted chooses a Machine that a user deletes, unless Karpenter drains it.
func (w *world) chooseDeleted(m simMachine, claims []simClaim, plan Plan) {
	for _, c := range claims {
		if c.uid == m.Claim {
			if !c.registered || c.providerID != m.ProviderID {
				w.choose(m)
			}
			return
		}
	}
	if !w.servesAfterAll(plan, m) {
		w.choose(m)
	}
}

// servesAfterAll is the live check before a linked Machine is deleted: its claim
// exists, and it is not the second Machine of that claim.
func (w *world) servesAfterAll(plan Plan, m simMachine) bool {
	if m.Claim == "" || m.claimName == "" {
		return false
	}
	for _, c := range w.claims.now() {
		if c.name != m.claimName {
			continue
		}
		other, served := plan.Served[c.uid]
		if c.uid != m.Claim || !served || (m.ProviderID != "" && m.ProviderID == c.providerID) {
			return c.uid == m.Claim
		}
		for _, first := range w.machines.now() {
			if first.Name == other {
				return first.Claim != c.uid || first.chosen || first.deleting
			}
		}
		return true
	}
	return false
}
