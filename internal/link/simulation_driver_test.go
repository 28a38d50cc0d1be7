// SPDX-License-Identifier: Apache-2.0

package link

// refresh lets an actor's caches catch up.
func (w *world) refresh(actor int) {
	if actor < numCaches {
		w.views[actor] = view{w.claims.latest(), w.machines.latest(), w.md.latest(), w.ms.latest()}
	}
}

// catchUp lets one of an actor's caches catch up by some versions, or none.
func (w *world) catchUp(actor int) {
	v := &w.views[actor]
	some := func(index *int, latest int) { *index += w.random.Intn(latest - *index + 1) }
	switch w.random.Intn(4) {
	case 0:
		some(&v.claims, w.claims.latest())
	case 1:
		some(&v.machines, w.machines.latest())
	case 2:
		some(&v.md, w.md.latest())
	case 3:
		some(&v.ms, w.ms.latest())
	}
}

// act is one step of an actor that reads from caches; core works on all claims.
func (w *world) act(actor int) {
	w.actor = actor
	w.step++
	switch actor {
	case core:
		for _, c := range w.claims[w.views[core].claims] {
			w.reconcileClaim(c)
		}
	case machineDeployment:
		if w.pool != nil {
			w.makeMachines()
		} else {
			w.passReplicas()
		}
	case machineSet:
		if w.pool != nil {
			w.provide()
		} else {
			w.scaleMachineSet()
		}
	case linker:
		w.link()
	case scaler:
		w.scale()
	case infrastructure:
		for _, m := range w.machines.now() {
			w.boot(m)
			w.terminate(m)
		}
	}
	w.check()
}

// round lets each actor act once on fresh caches, in the default order.
func (w *world) round() {
	for _, actor := range []int{core, scaler, machineDeployment, machineSet, infrastructure, linker} {
		w.refresh(actor)
		w.act(actor)
	}
}

// settle runs rounds until one writes nothing, then checks what must hold then.
func (w *world) settle() {
	w.crash, w.blocked = -1, false
	for range 100 {
		before := w.writes
		w.round()
		if w.failure != "" {
			return
		}
		if w.writes == before && !w.hasSpare() {
			w.checkSettled()
			return
		}
	}
	w.fail("it does not settle")
}

// hasSpare tells whether a Machine waits to be used or to go.
func (w *world) hasSpare() bool {
	free := 0
	for _, m := range w.machines.now() {
		if w.pool != nil && m.chosen {
			return true
		}
		if m.Claim == "" && !m.chosen && !m.deleting {
			if m.Released {
				return true
			}
			free++
		}
	}
	return free > w.own
}

// chaos runs actors in random order on stale caches.
func (w *world) chaos() {
	steps, maxClaims := 20+w.random.Intn(140), 1+w.random.Intn(5)
	fresh := w.random.Intn(100) // percentage of steps on fresh caches
	for w.step < steps && w.failure == "" {
		w.step++
		w.crash = -1
		if w.random.Intn(8) == 0 {
			w.crash = w.random.Intn(4)
		}
		w.randomStep(maxClaims, fresh)
		w.check()
	}
}

func (w *world) randomStep(maxClaims, fresh int) {
	claims, machines := w.claims.now(), w.machines.now()
	choice := w.random.Intn(100)
	switch {
	case choice < 8 && len(claims) < maxClaims:
		w.actor = core
		w.createClaim()
	case choice < 12 && len(claims) > 0:
		w.actor = core
		w.deleteClaim(claims[w.random.Intn(len(claims))].uid)
	case choice < 13 && len(machines) > 0:
		w.actor = user
		w.updateMachine(machines[w.random.Intn(len(machines))].Name, 0, func(m *simMachine) {
			m.deleting = m.deleting || m.Used || w.deletedBooting
		})
	case choice < 16 && w.blocks:
		w.actor = user
		w.blocked = !w.blocked
		w.tracef("preflight checks fail: %t", w.blocked)
	case choice < 14 && len(machines) > 0:
		w.actor = infrastructure
		w.breakDown(machines[w.random.Intn(len(machines))])
	case choice < 24 && len(machines) > 0:
		w.actor = infrastructure
		w.boot(machines[w.random.Intn(len(machines))])
	case choice < 32 && len(machines) > 0:
		w.actor = infrastructure
		w.terminate(machines[w.random.Intn(len(machines))])
	default:
		w.actor = w.random.Intn(numCaches)
		if w.random.Intn(100) < fresh {
			w.refresh(w.actor)
		} else {
			w.catchUp(w.actor)
		}
		if seen := w.claims[w.views[core].claims]; w.actor == core {
			if len(seen) > 0 {
				w.reconcileClaim(seen[w.random.Intn(len(seen))])
			}
			return
		}
		w.step-- // act counts it
		w.act(w.actor)
	}
}
