// SPDX-License-Identifier: Apache-2.0

package model

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMachineDeployment(t *testing.T) {
	for name, test := range map[string]struct {
		replicas, machineSet, machines int32
		// want is what the MachineSet gets in consecutive reconciliations, if its Machines do not
		// change.
		want []int32
	}{
		"nothing to do": {3, 3, 3, []int32{3}},
		"scaled up":     {5, 3, 3, []int32{5}},
		"scaled up, before the first are created": {5, 3, 0, []int32{5}},
		"scaled down":                            {3, 5, 5, []int32{3}},
		"scaled down to nothing":                 {0, 5, 9, []int32{0}},
		"as many as there are, deleting ones":    {5, 4, 5, []int32{4}},
		"fewer than there are, deleting ones":    {5, 4, 7, []int32{4}},
		"one more, while one is deleting":        {6, 4, 5, []int32{5, 6}},
		"one more, while many are deleting":      {7, 0, 6, []int32{1, 2, 3, 4, 5, 6, 7}},
		"two more, while many are deleting":      {12, 1, 10, []int32{3, 5, 7, 9, 11, 12}},
		"as many more as are deleting, or twice": {20, 0, 10, []int32{10, 20}},
	} {
		t.Run(name, func(t *testing.T) {
			got := []int32{MachineDeployment(test.replicas, test.machineSet, test.machines)}
			for {
				last := got[len(got)-1]
				next := MachineDeployment(test.replicas, last, test.machines)
				if next == last {
					break
				}
				got = append(got, next)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMachineSet(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	machine := func(name string, second int, change ...func(*Machine)) Machine {
		m := Machine{Name: name, Created: start.Add(time.Duration(second) * time.Second), Healthy: true}
		for _, change := range change {
			change(&m)
		}
		return m
	}
	deleting := func(m *Machine) { m.Deleting = true }
	annotated := func(m *Machine) { m.DeleteAnnotation = true }
	booting := func(m *Machine) { m.Healthy = false }

	for name, test := range map[string]struct {
		replicas int32
		blocked  bool
		machines []Machine
		create   int32
		remove   []string
	}{
		"none":      {},
		"the first": {replicas: 3, create: 3},
		"more":      {replicas: 3, machines: []Machine{machine("a", 0)}, create: 2},
		"enough":    {replicas: 1, machines: []Machine{machine("a", 0)}},
		"all of them, newest first": {
			machines: []Machine{machine("b", 1), machine("c", 0), machine("a", 2)},
			remove:   []string{"a", "b", "c"},
		},
		"a deleting one counts, so none is created": {
			replicas: 2, machines: []Machine{machine("a", 0), machine("b", 0, deleting)},
		},
		"a deleting one counts, so fewer are created": {
			replicas: 3, machines: []Machine{machine("a", 0), machine("b", 0, deleting)}, create: 1,
		},
		"deleting ones count as deleted": {
			replicas: 1, machines: []Machine{machine("a", 0), machine("b", 1), machine("c", 0, deleting)},
			remove: []string{"b"},
		},
		"a deleting one counts instead of an annotated one": {
			replicas: 2, machines: []Machine{machine("a", 0, annotated), machine("b", 1), machine("c", 0, deleting)},
		},
		"annotated, then booting, then newest": {
			machines: []Machine{machine("a", 0), machine("b", 9), machine("c", 2, booting), machine("d", 1, annotated)},
			remove:   []string{"d", "c", "b", "a"},
		},
		"booting and annotated is annotated": {
			replicas: 1, machines: []Machine{machine("a", 0, booting), machine("b", 0, booting, annotated)},
			remove: []string{"b"},
		},
		"booting ones by name, not by age": {
			replicas: 1, machines: []Machine{machine("b", 9, booting), machine("c", 5, booting), machine("a", 0, booting)},
			remove: []string{"a", "b"},
		},
		"annotated ones by name, not by age": {
			replicas: 1, machines: []Machine{machine("b", 0, annotated), machine("a", 9, annotated)},
			remove: []string{"a"},
		},
		"healthy ones of one second in the given order": {
			replicas: 1, machines: []Machine{machine("b", 1), machine("c", 1), machine("a", 1)},
			remove: []string{"b", "c"},
		},
		"times are compared by the second": {
			replicas: 1,
			machines: []Machine{machine("b", 1), machine("a", 1, func(m *Machine) { m.Created = m.Created.Add(time.Millisecond) })},
			remove:   []string{"b"},
		},
		"a blocked one creates none": {
			replicas: 3, blocked: true, machines: []Machine{machine("a", 0)},
		},
		"a blocked one deletes": {
			replicas: 1, blocked: true, machines: []Machine{machine("a", 0), machine("b", 0, annotated)},
			remove: []string{"b"},
		},
		"more deleting ones than surplus ones": {
			replicas: 2, machines: []Machine{machine("a", 0, deleting), machine("b", 0, deleting), machine("c", 0)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			create, remove := MachineSet(test.replicas, test.blocked, test.machines)
			if create != test.create {
				t.Errorf("creates %d, want %d", create, test.create)
			}
			if diff := cmp.Diff(test.remove, remove); diff != "" {
				t.Errorf("removes (-want +got):\n%s", diff)
			}
		})
	}
}
