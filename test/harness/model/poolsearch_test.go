// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/karpenter-capi/karpenter-capi/test/harness/counts"
)

// The results of a search, worst last.
const (
	right   = "right"
	stuck   = "stuck"   // a claim may never get its Machine, or a Machine without a claim may stay
	endless = "endless" // more and more instances may be created
	wrong   = "wrong"   // an instance that serves a live claim may be removed
)

// search visits all interleavings, oldest state first, and returns the result and the number of states.
func search(provider PoolProvider, o order, d disturbances) (string, int) {
	start := poolState{replicas: 2, known: 2, replicasSeen: 2, acted: 2, left: d, recovery: recovery{age: recovered}}
	for i := range 2 {
		start.machines[i] = poolMachine{instance: true, machine: true, hook: o.hold, serves: serving}
	}
	start.seen = start.machines
	states, known := []poolState{start}, map[poolState]int{start: 0}
	before := [][]int{nil}
	var even []int
	for i := 0; i < len(states); i++ {
		next, isWrong, isFull := states[i].next(provider, o)
		switch {
		case isWrong:
			return wrong, len(states)
		case isFull:
			return endless, len(states)
		case len(next) == 0 && states[i].even():
			even = append(even, i)
		}
		for _, after := range next {
			n, found := known[after]
			if !found {
				n = len(states)
				known[after] = n
				states, before = append(states, after), append(before, nil)
			}
			before[n] = append(before[n], i)
		}
	}
	if countBefore(before, even) < len(states) {
		return stuck, len(states)
	}
	return right, len(states)
}

// countBefore returns the number of states from which one of the given ones can be reached, including these.
func countBefore(before [][]int, given []int) int {
	reached := map[int]bool{}
	for open := slices.Clone(given); len(open) > 0; {
		last := open[len(open)-1]
		open = open[:len(open)-1]
		if !reached[last] {
			reached[last] = true
			open = append(open, before[last]...)
		}
	}
	return len(reached)
}

// worst returns the worst result with any of some disturbances, and the number of states.
func worst(provider PoolProvider, o order, all ...disturbances) (result string, states int) {
	result = right
	for _, d := range all {
		got, seen := search(provider, o, d)
		states += seen
		badness := []string{right, stuck, endless, wrong}
		if cmp.Compare(slices.Index(badness, got), slices.Index(badness, result)) > 0 {
			result = got
		}
	}
	return result, states
}

var (
	strict          = PoolProvider{}
	likeAzure       = PoolProvider{RemovesAnnotated: true}
	ignoring        = PoolProvider{IgnoresAnnotation: true}
	lenient         = PoolProvider{Lenient: true}
	lenientIgnoring = PoolProvider{Lenient: true, IgnoresAnnotation: true}
)

// TestPoolOrders is the table of docs/design/machinepools.md.
func TestPoolOrders(t *testing.T) {
	disturbed := []disturbances{{ends: 2}, {comes: 1, ends: 1}, {ends: 1, deleted: 1}, {comes: 1, deleted: 1}, {ends: 1, dies: 1}}
	searched := 0
	for name, test := range map[string]struct {
		order order
		// want is the result with each of the providers above.
		want [5]string
	}{
		"lower":                         {order{}, [5]string{wrong, wrong, wrong, wrong, wrong}},
		"delete, lower":                 {order{deleteFirst: true}, [5]string{wrong, wrong, wrong, wrong, wrong}},
		"annotate, lower":               {order{annotate: true}, [5]string{wrong, wrong, wrong, wrong, wrong}},
		"annotate, wait, lower":         {order{annotate: true, settle: true}, [5]string{wrong, wrong, wrong, stuck, wrong}},
		"hold, annotate, lower, delete": {order{hold: true, annotate: true}, [5]string{wrong, wrong, wrong, wrong, wrong}},
		"hold, annotate, wait, lower, wait, delete": {held, [5]string{right, right, wrong, stuck, wrong}},
	} {
		for i, provider := range []PoolProvider{strict, likeAzure, ignoring, lenient, lenientIgnoring} {
			t.Run(name, func(t *testing.T) {
				got, states := worst(provider, test.order, disturbed...)
				if got != test.want[i] {
					t.Errorf("with %+v: %s, want %s", provider, got, test.want[i])
				}
				if got == right {
					searched += states
				}
			})
		}
	}
	counts.Print(t, fmt.Sprintf("search of machine pools: %d states in which no instance of a live claim can be removed", searched))
}

// TestPoolOneByOne checks that deleting first is enough with lenient providers, if nothing else happens.
func TestPoolOneByOne(t *testing.T) {
	for _, provider := range []PoolProvider{lenient, lenientIgnoring} {
		if got, _ := worst(provider, order{deleteFirst: true}, disturbances{ends: 1}); got != right {
			t.Errorf("with %+v: %s", provider, got)
		}
	}
}

// TestPoolWhole checks that any provider can empty a pool in which no claim is left.
func TestPoolWhole(t *testing.T) {
	for _, provider := range []PoolProvider{strict, likeAzure, ignoring, lenient, lenientIgnoring} {
		if got, _ := worst(provider, order{whole: true}, disturbances{ends: 2}); got != right {
			t.Errorf("with %+v: %s", provider, got)
		}
		// Before that Machines without a claim stay, but none with a claim is removed.
		if got, _ := worst(provider, order{whole: true}, disturbances{comes: 1, ends: 2}, disturbances{ends: 1, deleted: 1}, disturbances{ends: 1, dies: 1}); got != stuck {
			t.Errorf("with %+v: %s", provider, got)
		}
	}
}

// TestPoolMarkedMachineDisappears is the remaining race: the instance of a marked Machine fails before the provider sees lower
// replicas. The provider creates a replacement, and then has one too many.
func TestPoolMarkedMachineDisappears(t *testing.T) {
	if got, _ := worst(strict, held, disturbances{ends: 1, chosenDies: 1}); got != wrong {
		t.Errorf("%s, so the document claims too little", got)
	}
}
