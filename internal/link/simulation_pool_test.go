// SPDX-License-Identifier: Apache-2.0

package link

import (
	"fmt"
	"slices"

	"github.com/karpenter-capi/karpenter-capi/test/model"
)

// simInstance is an instance of a pool, in the cloud.
type simInstance struct {
	name string
	// machine tells that Cluster API has made a Machine for it.
	machine, going bool
}

// scaling is what the kind's observe tells the scaler.
func (w *world) scaling(v view) Scaling {
	if w.pool == nil {
		set := w.ms[v.ms]
		certain := set.blocked && set.observed && set.replicas == w.md[v.md].replicas && set.machines <= len(w.machines[v.machines])
		md := w.md[v.md]
		return MachineSet{Replicas: set.replicas, Behind: !set.observed, Blocked: certain, Lowered: md.lowered, Probe: w.step-md.since >= probeSteps}
	}
	// A wait is over when the provider has seen what it is for: replicas here, and in
	// forDecide that a Machine was chosen.
	return Pool{Settled: w.md[w.views[machineSet].md] == w.md.now() && v.md == w.md.latest()}
}

// providerKnows tells whether the provider has seen that a Machine was chosen.
func (w *world) providerKnows(name string) bool {
	chosen := func(machines []simMachine) bool {
		return slices.ContainsFunc(machines, func(m simMachine) bool { return m.Name == name && m.chosen })
	}
	return chosen(w.machines[w.views[machineSet].machines]) || !chosen(w.machines.now())
}

// makeMachines is the MachinePool controller: it makes a Machine for each instance.
func (w *world) makeMachines() {
	for i := range w.instances {
		instance := &w.instances[i]
		if instance.machine || instance.going {
			continue
		}
		instance.machine = true
		w.machines = append(w.machines, append(slices.Clone(w.machines.now()),
			simMachine{Machine: Machine{Name: instance.name, Created: w.now()}, version: w.wrote(), spareSince: w.step}))
		w.tracef("creates Machine %s", instance.name)
	}
}

// provide is the infrastructure provider. It knows its instances, and has the rest from
// its caches.
func (w *world) provide() {
	v := w.views[machineSet]
	annotated := map[string]bool{}
	for _, m := range w.machines[v.machines] {
		annotated[m.Name] = m.chosen
	}
	var instances []model.Instance
	for _, instance := range w.instances {
		instances = append(instances, model.Instance{UID: instance.name, Going: instance.going, DeleteAnnotation: annotated[instance.name]})
	}
	create, remove := model.MachinePool(*w.pool, w.md[v.md].replicas, -1, instances)
	for range create {
		w.made++
		name := fmt.Sprintf("m%c%d", 'a'+rune(w.random.Intn(4)), w.made)
		w.instances = append(w.instances, simInstance{name: name})
		w.wrote()
		w.tracef("makes instance %s", name)
	}
	for _, name := range remove {
		// One whose Machine is still to be made has to wait.
		w.updateMachine(name, 0, func(now *simMachine) {
			if claim, serves := w.serves(*now); serves {
				w.victims = append(w.victims, w.step)
				w.tracef("HARM: Machine %s, deleted for replicas %d, serves live claim %s", name, w.md[v.md].replicas, claim)
			}
			now.deleting = true
		})
	}
}

// lose lets the instance of a deleted Machine go, unless its hook holds it, and then
// the Machine.
func (w *world) lose(m simMachine) {
	i := slices.IndexFunc(w.instances, func(instance simInstance) bool { return instance.name == m.Name })
	switch {
	case !m.deleting || m.hook:
	case !w.instances[i].going:
		w.instances[i].going = true
		w.updateMachine(m.Name, 0, func(now *simMachine) { now.Gone = true })
	default:
		w.instances = slices.Delete(w.instances, i, i+1)
		w.vanish(m)
	}
}
