// SPDX-License-Identifier: Apache-2.0

package model

import "strconv"

// What a Machine serves.
const (
	spare   = iota // no claim yet
	serving        // a live claim
	over           // a claim that no longer exists
)

// poolMachine is an instance and its Machine.
type poolMachine struct {
	// There is an instance, and a Machine for it, which is created later.
	instance, machine bool
	// The Machine has the annotation and the hook, and is being deleted.
	annotated, hook, deleting bool
	// The instance is being deleted.
	going  bool
	serves int8
}

// poolState is the complete state. It is a value, so that a search can remember the states that it has visited.
type poolState struct {
	machines [6]poolMachine
	// seen and known are the operator's caches; annotated and replicasSeen are the provider's.
	seen         [6]poolMachine
	known        int8
	annotated    [6]bool
	replicas     int8
	replicasSeen int8
	acted        int8
	waiting      int8
	recovery     recovery
	left         disturbances
}

// next returns all states that one step leads to; wrong reports whether a step removes an instance that serves a live
// claim.
func (w poolState) next(provider PoolProvider, o order) (states []poolState, wrong, full bool) {
	step := func(change func(*poolState)) {
		after := w
		change(&after)
		if after != w {
			states = append(states, after)
		}
	}
	if w.left.comes > 0 {
		step(func(w *poolState) { w.left.comes--; w.waiting++ })
	}
	step(func(w *poolState) { w.seeReplicas() })
	step(func(w *poolState) { w.seeMarks(o) })
	step(func(w *poolState) { w.seePool() })
	step(func(w *poolState) { w.seeMachines() })
	w.recover(o, step)
	for i, m := range w.machines {
		step(func(w *poolState) { w.machines[i].cloud() })
		if m.instance && !m.machine && !w.recovery.clusterAPI {
			step(func(w *poolState) { w.machines[i].machine = true })
		}
		if m.serves == serving && w.left.ends > 0 {
			step(func(w *poolState) { w.left.ends--; w.machines[i].serves = over })
		}
		if m.machine && !m.deleting && w.left.deleted > 0 {
			step(func(w *poolState) { w.left.deleted--; w.lose(i); w.machines[i].deleting = true })
		}
		if m.machine && m.instance && !m.going && !m.annotated && w.left.dies > 0 {
			step(func(w *poolState) { w.left.dies--; w.die(i) })
		}
		if m.machine && !m.going && m.annotated && w.left.chosenDies > 0 {
			step(func(w *poolState) { w.left.chosenDies--; w.die(i) })
		}
	}
	for made := range w.mistakes {
		step(func(w *poolState) { w.operate(o, made) })
	}
	step(func(w *poolState) { wrong, full = w.provide(provider) })
	return states, wrong, full
}

// lose ends the claim of a Machine that a user deletes; Karpenter creates another one for its Pods.
func (w *poolState) lose(i int) {
	if w.machines[i].serves == serving {
		w.machines[i].serves = over
		w.waiting++
	}
}

// die ends an instance without its Machine; the provider then deletes the Machine, and a hook cannot hold an instance
// that does not exist.
func (w *poolState) die(i int) {
	w.lose(i)
	w.machines[i].deleting, w.machines[i].going, w.machines[i].hook = true, true, false
}

// cloud does the next step for a Machine that is being deleted, and its instance.
func (m *poolMachine) cloud() {
	switch {
	case m.going:
		*m = poolMachine{} // Another instance can use its index now.
	case m.deleting && !m.hook:
		m.going = true
	}
}

// provide is the infrastructure provider: it knows its instances, and reads replicas and annotations from its cache.
func (w *poolState) provide(provider PoolProvider) (wrong, full bool) {
	var instances []Instance
	for i, m := range w.machines {
		if m.instance {
			instances = append(instances, Instance{UID: strconv.Itoa(i), Going: m.going, DeleteAnnotation: w.annotated[i]})
		}
	}
	create, remove := MachinePool(provider, int32(w.replicasSeen), int32(w.acted), instances)
	w.acted = w.replicasSeen
	for _, uid := range remove {
		i, _ := strconv.Atoi(uid)
		m := &w.machines[i]
		switch {
		case !m.machine: // Cluster API is about to create it.
			w.acted = -1
		case !m.deleting:
			wrong = wrong || m.serves == serving
			m.deleting = true
		}
	}
	for i := range w.machines {
		if create > 0 && w.machines[i] == (poolMachine{}) && w.seen[i] == (poolMachine{}) && !w.annotated[i] {
			w.machines[i].instance = true
			create--
		}
	}
	return wrong, create > 0
}

// even reports whether each claim has a Machine, and each Machine a claim.
func (w poolState) even() bool {
	serves := int8(0)
	for _, m := range w.machines {
		if m.serves == serving && m.instance {
			serves++
		} else if m.instance || m.machine {
			return false
		}
	}
	return w.waiting == 0 && w.replicas == serves
}
