// SPDX-License-Identifier: Apache-2.0

package model

// age is the time since the last disturbance of the management cluster that the operator knows of.
type age int8

const (
	// recent is less than the longest backoff: any watch can be closed.
	recent age = iota
	// reopened is the longest backoff: all watches are open again, but what they lacked may still be on its way.
	reopened
	// recovered is that and the margin: all caches have what they lacked.
	recovered
)

// recovery is the state of the caches after an outage of the management cluster. The search does not distinguish a
// watch that is closed from one that is open again and has not filled its cache yet.
type recovery struct {
	age age
	// The operator's caches of the MachinePool and of Machines that still lack what happened.
	pool, machines bool
	// The provider's caches of the replicas and of the marked Machines that do.
	replicas, marks bool
	// Whether the cache of Cluster API's controller of MachinePools does.
	clusterAPI bool
}

// mistakes are what the operator takes for true although it is not, because a cache has not recovered.
type mistakes struct {
	// The provider has seen the replicas, or a mark: any time may have passed since the write.
	replicas bool
	marks    [6]bool
}

// recover takes the steps of an outage, of what follows it, and of a process that starts.
func (w poolState) recover(o order, step func(func(*poolState))) {
	if w.left.outages > 0 {
		step(func(w *poolState) {
			w.left.outages--
			w.recovery = recovery{pool: true, machines: true, replicas: true, marks: true, clusterAPI: true}
		})
	}
	if w.left.restarts > 0 {
		step(func(w *poolState) { w.left.restarts--; w.start(o) })
	}
	for i, m := range w.machines {
		if m.going && w.recovery.clusterAPI && w.left.orphans > 0 {
			step(func(w *poolState) { w.left.orphans--; w.machines[i] = poolMachine{machine: true} })
		}
	}
	step(func(w *poolState) { w.recovery.clusterAPI = false })
	switch r := w.recovery; {
	case r.pool || r.machines: // Its connection is interrupted, and the end of that is a disturbance.
	case r.age == recent:
		step(func(w *poolState) { w.recovery.age = reopened })
	case r.age == reopened && !r.replicas && !r.marks && !r.clusterAPI:
		step(func(w *poolState) { w.recovery.age = recovered })
	}
}

// start is a new process of the operator, which fills its cache before it decides. It does not know of what happened
// before.
func (w *poolState) start(o order) {
	w.seePool()
	w.seeMachines()
	w.recovery.age = recent
	if o.forgets {
		w.recovery.age = recovered
	}
}

// What a cache sees is the actual state: it no longer lacks anything then.

func (w *poolState) seeReplicas() {
	w.replicasSeen, w.recovery.replicas = w.replicas, false
}

func (w *poolState) seeMarks(o order) {
	for i, m := range w.machines {
		w.annotated[i] = m.annotated && o.annotate
	}
	w.recovery.marks = false
}

func (w *poolState) seePool() {
	w.known, w.recovery.pool = w.replicas, false
}

func (w *poolState) seeMachines() {
	w.seen, w.recovery.machines = w.machines, false
}

// mistakes yields all combinations of mistakes that the operator can make.
func (w poolState) mistakes(yield func(mistakes) bool) {
	var possible []func(*mistakes)
	if w.recovery.replicas && w.replicasSeen != w.replicas {
		possible = append(possible, func(made *mistakes) { made.replicas = true })
	}
	for i, m := range w.machines {
		if w.recovery.marks && m.annotated && !w.annotated[i] {
			possible = append(possible, func(made *mistakes) { made.marks[i] = true })
		}
	}
	for some := range 1 << len(possible) {
		made := mistakes{}
		for i, add := range possible {
			if some&(1<<i) != 0 {
				add(&made)
			}
		}
		if !yield(made) {
			return
		}
	}
}

// orphaned reports whether a Machine has no instance: Cluster API has created it for one that its cache still had.
func (m poolMachine) orphaned() bool { return m.machine && !m.instance }
