// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMachinePool(t *testing.T) {
	going := func(i *Instance) { i.Going = true }
	annotated := func(i *Instance) { i.DeleteAnnotation = true }
	instance := func(uid string, change ...func(*Instance)) Instance {
		i := Instance{UID: uid}
		for _, change := range change {
			change(&i)
		}
		return i
	}
	strict, lenient, ignoring := PoolProvider{}, PoolProvider{Lenient: true}, PoolProvider{IgnoresAnnotation: true}
	removing := PoolProvider{RemovesAnnotated: true}

	// By the hash, c goes before b, and b before a.
	for name, test := range map[string]struct {
		provider        PoolProvider
		replicas, acted int32
		instances       []Instance
		create          int32
		remove          []string
	}{
		"none":      {acted: -1},
		"the first": {replicas: 3, acted: -1, create: 3},
		"enough":    {replicas: 1, acted: 1, instances: []Instance{instance("a")}},
		"a new pool, and a lenient one": {
			provider: lenient, replicas: 2, acted: -1, create: 2,
		},
		"one that is going is replaced": {
			provider: strict, replicas: 2, acted: 2, instances: []Instance{instance("a"), instance("b", going)}, create: 1,
		},
		"one that is going is not replaced by a lenient one": {
			provider: lenient, replicas: 2, acted: 2, instances: []Instance{instance("a"), instance("b", going)},
		},
		"one that is going is not replaced if replicas were lowered": {
			provider: strict, replicas: 1, acted: 2, instances: []Instance{instance("a"), instance("b", going)},
		},
		"a lenient one makes up for it when replicas change": {
			provider: lenient, replicas: 3, acted: 2, instances: []Instance{instance("a")}, create: 2,
		},
		"the annotated one": {
			provider: strict, replicas: 2, acted: 3,
			instances: []Instance{instance("a"), instance("b", annotated), instance("c")}, remove: []string{"b"},
		},
		"the annotated one, and any": {
			provider: strict, replicas: 1, acted: 3,
			instances: []Instance{instance("a"), instance("b", annotated), instance("c")}, remove: []string{"b", "c"},
		},
		"any, if it looks at no annotation": {
			provider: ignoring, replicas: 2, acted: 3,
			instances: []Instance{instance("a"), instance("b", annotated), instance("c")}, remove: []string{"c"},
		},
		"a lenient one honours the annotation, too": {
			provider: lenient, replicas: 2, acted: 3,
			instances: []Instance{instance("a"), instance("b", annotated), instance("c")}, remove: []string{"b"},
		},
		"an annotated one that is going uses up no place": {
			provider: strict, replicas: 1, acted: 3,
			instances: []Instance{instance("a"), instance("b", annotated, going), instance("c")}, remove: []string{"c"},
		},
		"annotated ones stay without lower replicas": {
			provider: strict, replicas: 2, acted: 2, instances: []Instance{instance("a", annotated), instance("b")},
		},
		"annotated ones go without lower replicas": {
			provider: removing, replicas: 2, acted: 2, instances: []Instance{instance("a", annotated), instance("b")}, remove: []string{"a"},
		},
		"and are replaced": {
			provider: removing, replicas: 2, acted: 2, instances: []Instance{instance("a", annotated, going), instance("b")}, create: 1,
		},
		"no other goes while an annotated one does": {
			provider: removing, replicas: 1, acted: 3, instances: []Instance{instance("a", annotated, going), instance("b"), instance("c")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			create, remove := MachinePool(test.provider, test.replicas, test.acted, test.instances)
			if create != test.create {
				t.Errorf("creates %d, want %d", create, test.create)
			}
			if diff := cmp.Diff(test.remove, remove); diff != "" {
				t.Errorf("removes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMachinePoolRemovesAny wants victims whose place nobody could guess from their age.
func TestMachinePoolRemovesAny(t *testing.T) {
	var instances []Instance
	for i := range 50 {
		instances = append(instances, Instance{UID: fmt.Sprintf("%04d", i)})
	}
	_, remove := MachinePool(PoolProvider{}, 0, 50, instances)
	if slices.IsSorted(remove) || slices.IsSortedFunc(remove, func(a, b string) int { return strings.Compare(b, a) }) {
		t.Errorf("they go by age: %v", remove)
	}
}
