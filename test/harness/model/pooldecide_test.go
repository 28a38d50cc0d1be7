// SPDX-License-Identifier: Apache-2.0

package model

// order is the steps in which a Machine leaves a pool. Each order begins when the operator has marked the Machine, so
// that it is no longer linked to a claim.
type order struct {
	// annotate it for the provider, before replicas are lowered.
	annotate bool
	// settle: wait, before replicas are lowered and before it is deleted, until the provider has seen all writes.
	settle bool
	// hold its instance, by a pre-terminate hook, from its link on until it is deletable.
	hold bool
	// deleteFirst: delete it, and lower replicas when its instance is being deleted.
	deleteFirst bool
	// whole: do not mark any, but lower replicas to zero when no claim is left.
	whole bool
	// real: decide with the operator's own code.
	real bool
	// recovery is how old the last disturbance of the management cluster must be before replicas are lowered or a
	// Machine is deleted.
	recovery age
	// forgets: a process that starts does not count as a disturbance.
	forgets bool
}

var held = order{hold: true, annotate: true, settle: true, real: true, recovery: recovered}

// disturbances is how often something can happen.
type disturbances struct {
	// comes and ends are claims, deleted are Machines that a user deletes, dies and chosenDies are instances that fail,
	// before or after they were marked.
	comes, ends, deleted, dies, chosenDies int8
	// outages are those of the management cluster, and restarts those of the operator. After an outage, orphans are
	// Machines that Cluster API creates for instances that no longer exist, but that its cache still has.
	outages, restarts, orphans int8
}

// poolPlan is what to do with a pool.
type poolPlan struct {
	replicas int8
	// choose are Machines to mark; link is one to link to a claim, and letGo are those to delete, with their hooks
	// removed.
	choose, link, letGo []int
}

// decide returns the plan for a pool as it was seen, for the orders that the operator does not use. Settled is whether
// the provider must have seen all writes.
func decide(o order, replicas, claims, waiting int8, machines []poolMachine, settled bool) poolPlan {
	if o.whole {
		return decideWhole(replicas, claims, waiting, machines)
	}
	plan := poolPlan{}
	var live, leaving, others, spares int8
	for _, m := range machines {
		switch {
		case !m.machine || m.going:
		case m.annotated && o.hold && !m.hook: // It was deleted, and may no longer exist.
		case m.annotated:
			leaving++
		case m.deleting:
			others++
		default:
			live++
		}
	}
	appeared := replicas <= live+leaving || o.deleteFirst
	for i, m := range machines {
		if !m.machine || m.going || m.annotated {
			continue
		}
		switch {
		case m.deleting:
			if o.hold && m.hook {
				plan.choose = append(plan.choose, i)
			}
		case m.serves == over:
			plan.choose = append(plan.choose, i)
		case m.serves == spare && int(waiting) > len(plan.link):
			plan.link = append(plan.link, i)
		case m.serves == spare && appeared:
			plan.choose = append(plan.choose, i)
		case m.serves == spare:
			spares++
		}
	}
	isNew := max(0, waiting-int8(len(plan.link))-spares)
	plan.replicas = live + others + isNew
	if isNew > 0 || o.deleteFirst {
		plan.replicas += leaving
	}
	if plan.replicas < replicas && (!appeared || o.settle && !settled) {
		plan.replicas = replicas
	}
	if plan.replicas != replicas || o.settle && !settled {
		return plan
	}
	for i, m := range machines {
		if m.machine && m.annotated && m.hook && replicas <= live+others+isNew {
			plan.letGo = append(plan.letGo, i)
		}
	}
	return plan
}

// decideWhole lowers replicas only to zero, when no claim is left, and raises them again when no Machine is left.
func decideWhole(replicas, claims, waiting int8, machines []poolMachine) poolPlan {
	var there, live int8
	plan := poolPlan{}
	for i, m := range machines {
		if !m.machine {
			continue
		}
		there++
		if !m.deleting {
			live++
		}
		if replicas > 0 && m.serves == spare && !m.deleting && int(waiting) > len(plan.link) {
			plan.link = append(plan.link, i)
		}
	}
	if claims > 0 && (replicas > 0 || there == 0) {
		plan.replicas = max(replicas, live+waiting-int8(len(plan.link)))
	}
	return plan
}

// operate does the first step of a plan: the process can crash after it, and the rest is decided again. The
// operator makes some mistakes.
func (w *poolState) operate(o order, made mistakes) {
	isSettled := w.replicasSeen == w.replicas
	for i, m := range w.seen {
		isSettled = isSettled && (w.annotated[i] || !m.annotated)
	}
	claims := w.waiting
	for _, m := range w.machines {
		if m.serves == serving {
			claims++
		}
	}
	plan := decide(o, w.known, claims, w.waiting, w.seen[:], isSettled)
	if o.real {
		plan = w.decideForReal(o, made)
	}
	switch {
	case len(plan.link) > 0:
		i := plan.link[0]
		if w.seen[i] == w.machines[i] {
			w.machines[i].serves, w.machines[i].hook = serving, o.hold
			w.waiting--
		}
	case len(plan.choose) > 0:
		if i := plan.choose[0]; w.seen[i] == w.machines[i] {
			if w.machines[i].orphaned() {
				w.lose(i)
			}
			w.machines[i].annotated, w.machines[i].hook = true, w.machines[i].hook || o.hold
			w.machines[i].deleting = w.machines[i].deleting || o.deleteFirst
		}
	case w.known != w.replicas: // The API server rejects the write, and shows it before a Machine is deleted.
	case plan.replicas != w.known:
		w.replicas = plan.replicas
		if !w.recovery.pool {
			w.known = w.replicas
		}
	case len(plan.letGo) > 0:
		if i := plan.letGo[0]; w.machines[i].machine && w.machines[i].annotated == w.seen[i].annotated {
			w.machines[i].deleting, w.machines[i].hook = true, false
		}
	}
}
