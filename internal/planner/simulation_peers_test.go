// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-capi/karpenter-capi/test/harness/model"
)

// createClaim creates a claim. Names are reused, UIDs are not.
func (w *simulation) createClaim() {
	name := ""
	for i := 0; name == "" || slices.ContainsFunc(w.now.claims, func(c simClaim) bool { return c.Name == name }); i++ {
		name = fmt.Sprintf("c%d", i)
	}
	w.made++
	uid := types.UID(fmt.Sprintf("%s.%d", name, w.made))
	w.now.claims = append(w.now.claims, simClaim{Claim: Claim{UID: uid, Name: name, Created: w.time(), ProviderID: ProvisionalID(uid)}})
}

// liveClaims is Karpenter core. It registers claims whose Node has joined, deletes claims that fail or
// lose their Node, and marks or unlinks the Machine of a claim before the claim ends.
func (w *simulation) liveClaims() {
	for _, c := range slices.Clone(w.now.claims) {
		now, linked := w.claim(c.UID), func(m simMachine) bool { return m.Claim == c.UID }
		node := find(w.now.machines, func(m simMachine) bool { return m.joined && m.ProviderID == c.ProviderID })
		failed := slices.ContainsFunc(w.now.machines, func(m simMachine) bool { return linked(m) && m.unfit() })
		switch live := slices.IndexFunc(w.now.machines, func(m simMachine) bool { return linked(m) && !m.leaving() }); {
		case !c.Leaving && node != nil && !node.deleting:
			now.registered = true
		case !c.Leaving:
			now.Leaving = c.registered || failed
		case live >= 0:
			m := &w.now.machines[live]
			if c.registered || m.HasNode || m.unfit() {
				m.Marked, m.Hooked = true, m.Hooked || w.pool != nil
			} else {
				m.Claim, m.WasLinked, m.spareSince = "", true, w.step
			}
		default:
			w.now.claims = slices.DeleteFunc(w.now.claims, func(other simClaim) bool { return other.UID == c.UID })
		}
	}
}

// deploy is the MachineDeployment controller. It sets the replicas of a MachineSet that may have changed since its
// caches saw it.
func (w *simulation) deploy() {
	v := w.view(w.provider)
	for _, s := range v.sets {
		set, want := w.set(s.name), model.MachineDeployment(v.md.replicas, s.replicas, s.machines)
		if set.replicas != want || want == v.md.replicas {
			set.decidedFrom, set.countedFrom = v.md.decidedFrom, v.md.countedFrom
		}
		if set.replicas != want {
			set.replicas, set.generation = want, set.generation+1
		}
	}
}

// scaleSets is the MachineSet controller. It waits until its caches have its own writes.
func (w *simulation) scaleSets() {
	for _, s := range w.view(w.provider).sets {
		if !w.laggingMachineSet {
			w.provider.machines = max(w.provider.machines, s.decidedFrom)
		}
		if w.provider.machines < w.ownWrites {
			continue
		}
		var machines []model.Machine
		fails := false // and then it does not report that it has acted
		for _, m := range w.view(w.provider).machines {
			if m.set == s.name {
				fails = fails || w.isOrphan(m) && !m.deleting
				machines = append(machines, model.Machine{Name: m.Name, Created: m.Created, Deleting: m.deleting, DeleteAnnotation: m.Marked, Healthy: m.HasNode})
			}
		}
		create, remove := model.MachineSet(s.replicas, w.blocked, machines)
		for range create {
			w.create(w.newName(), s.name, w.own == 0)
		}
		for _, name := range remove {
			w.remove(name, s.replicas, s.countedFrom)
		}
		set := w.set(s.name)
		if set.machines = int32(len(machines)); !fails {
			set.observed = max(set.observed, s.generation)
		}
		set.blocked = w.blocked && len(machines) < int(s.replicas)
		if w.wrote(); create > 0 || len(remove) > 0 {
			w.ownWrites = w.latest()
		}
	}
}

// newName returns a random name, so that names do not show the order of creation.
func (w *simulation) newName() string {
	w.made++
	return fmt.Sprintf("m%c%d", 'a'+rune(w.random.Intn(4)), w.made)
}

func (w *simulation) create(name, set string, drain bool) {
	m := simMachine{Machine: Machine{Name: name, Created: w.time()}, set: set, drain: drain, spareSince: w.step}
	w.now.machines = append(w.now.machines, m)
}

// remove deletes a Machine because more Machines than replicas exist.
//
// One loss is known: if a leaving Machine disappears while a lower number is on its way, the
// MachineSet replaces it, and then deletes one too many.
func (w *simulation) remove(name string, replicas int32, countedFrom int) {
	m := w.machine(name)
	if m == nil || m.deleting {
		return
	}
	known := slices.ContainsFunc(w.history[countedFrom].machines, func(seen simMachine) bool {
		now := w.machine(seen.Name)
		return w.lost[seen.Name] && (w.isOrphan(seen) || !seen.InstanceGone) && (now == nil || now.InstanceGone && !w.isOrphan(*now))
	})
	w.lost[name] = w.lost[name] || known // it can be a marked one that replicas count
	if w.serves(*m) || isOwn(*m) {
		text := fmt.Sprintf("Machine %s, deleted because of replicas %d, serves a live claim or is unmanaged", name, replicas)
		w.tracef("HARM: %s", text)
		if w.victims++; !known && w.isKind() {
			w.fail("%s", text)
		}
	}
	m.deleting = true
}

// provide is the provider of a pool.
func (w *simulation) provide() {
	v := w.view(w.provider)
	var instances []model.Instance
	for _, i := range w.instances {
		marked := slices.ContainsFunc(v.machines, func(m simMachine) bool { return m.Name == i.name && m.Marked })
		instances = append(instances, model.Instance{UID: i.name, Going: i.going, DeleteAnnotation: marked})
	}
	create, remove := model.MachinePool(*w.pool, v.md.replicas, -1, instances)
	for range create {
		w.instances = append(w.instances, simInstance{name: w.newName()})
	}
	for _, name := range remove {
		w.remove(name, v.md.replicas, v.md.countedFrom)
	}
}

// makeMachines is the MachinePool controller, which creates a Machine for each instance.
func (w *simulation) makeMachines() {
	for i := range w.instances {
		if instance := &w.instances[i]; !instance.machine && !instance.going {
			instance.machine = true
			w.create(instance.name, "", false)
		}
	}
}

// boot brings a Machine one step closer to its Node, also one that is being deleted.
func (w *simulation) boot(m *simMachine) {
	switch {
	case m.unfit() || w.isOrphan(*m):
	case m.ProviderID == "":
		m.ProviderID = "real://" + m.Name
	case !m.joined:
		m.joined = true
	default:
		m.HasNode = true
	}
}

// terminate brings a Machine that is being deleted one step closer to its end, unless a hook blocks it.
func (w *simulation) terminate(m *simMachine) {
	if !m.deleting || m.Hooked || w.pool == nil && m.drain && m.HasNode {
		return
	}
	if w.pool != nil && !m.InstanceGone {
		m.InstanceGone = true
		find(w.instances, func(i simInstance) bool { return i.name == m.Name }).going = true
		return
	}
	name := m.Name
	w.instances = slices.DeleteFunc(w.instances, func(i simInstance) bool { return i.name == name })
	w.now.machines = slices.DeleteFunc(w.now.machines, func(m simMachine) bool { return m.Name == name })
}
