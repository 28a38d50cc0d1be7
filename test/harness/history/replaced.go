// SPDX-License-Identifier: Apache-2.0

package history

import "github.com/samber/lo"

// replacements are the Machines that a MachineSet creates for Machines that have disappeared as planned. The operator marks a
// Machine and lowers replicas, and for a new claim raises them again: they count the marked Machine until it has disappeared
// (package planner). If that is before the MachineSet has seen that they were raised, or before they are lowered again, it
// creates a Machine too many (docs/design/deletion.md, "Races that remain").
type replacements struct {
	// released are the marked Machines that the replicas of their MachineSet once did not count, by key.
	released map[string]bool
	// counted is how many of them have disappeared while replicas counted them again, by the key of the MachineSet.
	counted map[string]int32
	// created is how many Machines were created for them.
	created int
}

// observeReplaced follows the change of a Machine.
func (c *Checker) observeReplaced(change Change, before *Object) {
	after := change.Object
	if before == nil && after == nil {
		return
	}
	name := setOf(change.Key, lo.CoalesceOrEmpty(after, before))
	set := c.objects[MachineSet][name]
	if set == nil {
		return
	}
	r, machines := &c.replaced, int32(len(c.machinesOf(name)))
	switch {
	case before == nil:
		if r.counted[name] > 0 && machines > set.Replicas-r.counted[name] {
			r.counted[name]--
			r.created++
			c.extra[name] = append(c.extra[name], after.Name)
		}
	case after == nil:
		if r.released[change.Key] && machines < set.Replicas {
			r.counted[name]++
		}
		delete(r.released, change.Key)
	}
	c.release(name, set.Replicas)
}

// observeReplicas follows the change of a MachineSet.
func (c *Checker) observeReplicas(change Change, before *Object) {
	after := change.Object
	if after == nil {
		delete(c.replaced.counted, change.Key)
		return
	}
	if before != nil && after.Replicas < before.Replicas {
		c.replaced.counted[change.Key] = max(0, c.replaced.counted[change.Key]-(before.Replicas-after.Replicas))
	}
	c.release(change.Key, after.Replicas)
}

// release notes the marked Machines of a MachineSet, if its replicas count none of them.
func (c *Checker) release(set string, replicas int32) {
	machines := c.machinesOf(set)
	if int(replicas) > lo.CountBy(lo.Values(machines), (*Object).Live) {
		return
	}
	for key, machine := range machines {
		if machine.Chosen {
			c.replaced.released[key] = true
		}
	}
}

// machinesOf returns the Machines of a MachineSet by key.
func (c *Checker) machinesOf(set string) map[string]*Object {
	return lo.PickBy(c.objects[Machine], func(key string, machine *Object) bool { return setOf(key, machine) == set })
}
