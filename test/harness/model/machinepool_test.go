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

	// By the hash, c is removed before b, and b before a.
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
		"a new pool of a lenient provider": {
			provider: lenient, replicas: 2, acted: -1, create: 2,
		},
		"one that is being deleted is replaced": {
			provider: strict, replicas: 2, acted: 2, instances: []Instance{instance("a"), instance("b", going)}, create: 1,
		},
		"one that is being deleted is not replaced by a lenient provider": {
			provider: lenient, replicas: 2, acted: 2, instances: []Instance{instance("a"), instance("b", going)},
		},
		"one that is being deleted is not replaced if replicas were lowered": {
			provider: strict, replicas: 1, acted: 2, instances: []Instance{instance("a"), instance("b", going)},
		},
		"a lenient provider replaces it when replicas change": {
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
		"any, if the provider ignores the annotation": {
			provider: ignoring, replicas: 2, acted: 3,
			instances: []Instance{instance("a"), instance("b", annotated), instance("c")}, remove: []string{"c"},
		},
		"a lenient provider also honours the annotation": {
			provider: lenient, replicas: 2, acted: 3,
			instances: []Instance{instance("a"), instance("b", annotated), instance("c")}, remove: []string{"b"},
		},
		"an annotated one that is being deleted does not count as removed": {
			provider: strict, replicas: 1, acted: 3,
			instances: []Instance{instance("a"), instance("b", annotated, going), instance("c")}, remove: []string{"c"},
		},
		"annotated ones stay without lower replicas": {
			provider: strict, replicas: 2, acted: 2, instances: []Instance{instance("a", annotated), instance("b")},
		},
		"annotated ones are removed without lower replicas": {
			provider: removing, replicas: 2, acted: 2, instances: []Instance{instance("a", annotated), instance("b")}, remove: []string{"a"},
		},
		"and are replaced": {
			provider: removing, replicas: 2, acted: 2, instances: []Instance{instance("a", annotated, going), instance("b")}, create: 1,
		},
		"no other is removed while an annotated one is being deleted": {
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

// TestMachinePoolRemovesAny checks that the removed instances do not depend on their age.
func TestMachinePoolRemovesAny(t *testing.T) {
	var instances []Instance
	for i := range 50 {
		instances = append(instances, Instance{UID: fmt.Sprintf("%04d", i)})
	}
	_, remove := MachinePool(PoolProvider{}, 0, 50, instances)
	if slices.IsSorted(remove) || slices.IsSortedFunc(remove, func(a, b string) int { return strings.Compare(b, a) }) {
		t.Errorf("they are removed by age: %v", remove)
	}
}
