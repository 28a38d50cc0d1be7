// SPDX-License-Identifier: Apache-2.0

package link

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-capi/karpenter-capi/test/model"
)

// createClaim is core making a claim. Names are used again, UIDs are not.
func (w *world) createClaim() {
	used := map[string]bool{}
	for _, c := range w.claims.now() {
		used[c.name] = true
	}
	name := ""
	for i := 0; name == "" || used[name]; i++ {
		name = fmt.Sprintf("c%d", i)
	}
	w.made++
	uid := types.UID(fmt.Sprintf("%s.%d", name, w.made))
	c := simClaim{uid: uid, name: name, created: w.now(), version: w.wrote()}
	w.claims = append(w.claims, append(slices.Clone(w.claims.now()), c))
	w.tracef("creates claim %s", c.uid)
}

// deleteClaim is core, or a user, deleting a claim.
func (w *world) deleteClaim(uid types.UID) {
	w.updateClaim(uid, 0, func(c *simClaim) { c.deleting = true })
}

// reconcileClaim is core's work on one claim as its cache has it.
func (w *world) reconcileClaim(c simClaim) {
	switch {
	case c.deleting:
		if c.providerID == "" || w.cloudProviderDelete(c) {
			w.finalizeClaim(c)
		}
	case !c.launched:
		// Core patches without lock what Create returned, and the whole list of
		// conditions, also on a stale read.
		w.updateClaim(c.uid, 0, func(c *simClaim) { c.launched, c.registered, c.providerID = true, false, ProvisionalID(c.uid) })
	case !c.registered && w.nodes[c.providerID]:
		w.updateClaim(c.uid, 0, func(c *simClaim) { c.registered = true })
	case c.registered && !w.nodes[c.providerID]:
		w.deleteClaim(c.uid) // its Node is gone
	}
}

// finalizeClaim removes a claim, with the version it was read in as precondition.
func (w *world) finalizeClaim(c simClaim) {
	if now, found := w.claim(c.uid); !found || now.version != c.version {
		return
	}
	for _, m := range w.machines.now() {
		if m.Claim == c.uid {
			w.fail("claim %s goes before its Machine %s", c.uid, m.Name)
		}
	}
	w.wrote()
	w.claims = append(w.claims, slices.DeleteFunc(slices.Clone(w.claims.now()), func(other simClaim) bool { return other.uid == c.uid }))
	w.tracef("claim %s is gone", c.uid)
}

// cloudProviderDelete is CloudProvider.Delete; true means NodeClaimNotFound.
func (w *world) cloudProviderDelete(c simClaim) bool {
	linked := func(machines []simMachine) (own []simMachine) {
		for _, m := range machines {
			if m.Claim == c.uid {
				own = append(own, m)
			}
		}
		return own
	}
	machines := linked(w.machines[w.views[core].machines])
	if len(machines) == 0 {
		machines = linked(w.machines.now())
	}
	left := false
	for _, m := range machines {
		now, found := w.claim(c.uid)
		if m.Used || m.Unfit || m.chosen || m.deleting || !found || now.registered {
			w.choose(m)
			left = true
		} else if !w.takeProviderID(now) || !w.release(m) {
			left = true
		}
	}
	return !left
}

// takeProviderID puts a claim's provisional ID back before its Machine is released.
func (w *world) takeProviderID(c simClaim) bool {
	return !w.crashed() && w.updateClaim(c.uid, c.version, func(c *simClaim) { c.providerID = ProvisionalID(c.uid) })
}

// choose is scalable.Choose on a Machine as it was read.
func (w *world) choose(m simMachine) {
	if m.chosen || w.crashed() {
		return
	}
	w.updateMachine(m.Name, m.version, func(now *simMachine) {
		if claim, serves := w.serves(*now); serves {
			w.fail("Machine %s is to go and serves live claim %s", m.Name, claim)
		}
		if isOwn(*now) {
			w.fail("Machine %s was there before, and is to go", m.Name)
		}
		now.chosen, now.hook = true, now.hook || w.pool != nil
	})
}

// release is scalable.Release on a Machine as it was read.
func (w *world) release(m simMachine) bool {
	if w.crashed() {
		return false
	}
	return w.updateMachine(m.Name, m.version, func(now *simMachine) {
		if claim, serves := w.serves(*now); serves {
			w.fail("Machine %s is released and serves live claim %s", m.Name, claim)
		}
		now.Claim, now.claimName, now.spareSince, now.Released = "", "", w.step, true
	})
}

// passReplicas is the MachineDeployment controller.
func (w *world) passReplicas() {
	md, ms := w.views[machineDeployment].md, &w.ms[w.ms.latest()]
	if w.md[md].replicas == ms.replicas {
		ms.from = md
		return
	}
	passed := *ms
	passed.replicas, passed.from, passed.generation, passed.observed = w.md[md].replicas, md, ms.generation+1, false
	w.ms = append(w.ms, passed)
	w.wrote()
	w.tracef("MachineSet's replicas %d", w.ms.now().replicas)
}

// scaleMachineSet is the MachineSet controller's syncReplicas.
func (w *world) scaleMachineSet() {
	v := &w.views[machineSet]
	if !w.laggingMachineSet {
		v.machines = max(v.machines, w.md[w.ms[v.ms].from].decidedFrom)
	}
	if v.machines < w.ownWrites {
		return
	}
	var seen []model.Machine
	for _, m := range w.machines[v.machines] {
		seen = append(seen, model.Machine{Name: m.Name, Created: m.Created, Deleting: m.deleting, DeleteAnnotation: m.chosen, Healthy: m.Used})
	}
	create, remove := model.MachineSet(w.ms[v.ms].replicas, w.blocked, seen)
	defer w.reportReplicas(w.ms[v.ms], len(seen))
	for range create {
		w.made++
		// Its name is random, so names do not tell the order of creation.
		name := fmt.Sprintf("m%c%d", 'a'+rune(w.random.Intn(4)), w.made)
		w.machines = append(w.machines, append(slices.Clone(w.machines.now()),
			simMachine{Machine: Machine{Name: name, Created: w.now()}, version: w.wrote(), hook: w.own == 0, spareSince: w.step}))
		w.tracef("creates Machine %s", name)
		w.ownWrites = w.machines.latest()
	}
	for _, name := range remove {
		w.updateMachine(name, 0, func(now *simMachine) {
			if claim, serves := w.serves(*now); serves {
				w.victims = append(w.victims, w.step)
				w.tracef("HARM: Machine %s, deleted for replicas %d, serves live claim %s", name, w.ms[v.ms].replicas, claim)
			}
			if isOwn(*now) {
				w.victims = append(w.victims, w.step)
				w.tracef("HARM: Machine %s, deleted for replicas %d, was there before", name, w.ms[v.ms].replicas)
			}
			now.deleting = true
		})
		w.ownWrites = w.machines.latest()
	}
}

// reportReplicas is what the MachineSet controller writes into the status of a MachineSet
// after it has acted on one that counts these Machines.
func (w *world) reportReplicas(acted simReplicas, machines int) {
	reported := w.ms.now()
	reported.observed = reported.observed || reported.generation == acted.generation
	reported.blocked, reported.machines = w.blocked && machines < int(acted.replicas), machines
	if reported != w.ms.now() {
		w.ms = append(w.ms, reported)
		w.wrote()
	}
}

// boot lets a Machine come one step further, also one that is being deleted.
func (w *world) boot(m simMachine) {
	switch {
	case m.Unfit:
	case m.ProviderID == "":
		w.updateMachine(m.Name, 0, func(m *simMachine) { m.ProviderID = "real://" + m.Name })
	case !w.nodes[m.ProviderID]:
		w.nodes[m.ProviderID] = true
		w.wrote()
		w.tracef("Node of Machine %s joins", m.Name)
	case !m.Used:
		w.updateMachine(m.Name, 0, func(m *simMachine) { m.Used = true })
	}
}

// breakDown lets a Machine fail for good.
func (w *world) breakDown(m simMachine) {
	if m.ProviderID == "" {
		w.updateMachine(m.Name, 0, func(m *simMachine) { m.Unfit = true })
	}
}

// terminate lets a deleted Machine vanish, however fast, unless its hook holds it.
func (w *world) terminate(m simMachine) {
	if w.pool != nil {
		w.lose(m)
		return
	}
	if !m.deleting || m.hook && m.Used {
		return
	}
	w.vanish(m)
}

// vanish removes a Machine and its Node.
func (w *world) vanish(m simMachine) {
	delete(w.nodes, m.ProviderID)
	w.wrote()
	w.machines = append(w.machines, slices.DeleteFunc(slices.Clone(w.machines.now()), func(other simMachine) bool { return other.Name == m.Name }))
	w.tracef("Machine %s is gone", m.Name)
}
