// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
)

// Count is what the objects of a pool say.
type Count struct {
	// Objects is how many there are.
	Objects int
	// Free is how many machines they have room for. Numbers reports whether that comes from numbers, of which one object
	// can have room for several machines.
	Free    int64
	Numbers bool
	// Consumers are the names that objects give as their consumers; nil if the source has no expression for that.
	Consumers sets.Set[string]
}

// Machine is a Machine of the served Cluster that was created for an offering.
type Machine struct {
	// Offering identifies the template and the offering.
	Offering string
	Pools    []Pool
	// Names are those by which an object can name it: its own, and that of its infrastructure object.
	Names []string
	// Provisioned reports whether its infrastructure is ready, so that it has taken what it needs.
	Provisioned bool
	// Linked reports whether it serves a claim. One that does not is spare.
	Linked bool
}

// Ledger subtracts from counts what Machines and claims will still take. Pools without a count have no limit.
type Ledger struct {
	counts map[Pool]Count
	taken  map[Pool]int64
	// spare has the number of spare Machines by offering. They will serve the next claims.
	spare map[string]int64
}

// NewLedger returns a ledger of counts, from which Machines have taken what they need. Machines that are leaving must
// not be given.
func NewLedger(counts map[Pool]Count, machines []Machine) *Ledger {
	l := &Ledger{counts: counts, taken: map[Pool]int64{}, spare: map[string]int64{}}
	for i := range machines {
		machine := &machines[i]
		for _, pool := range machine.Pools {
			if !machine.consumes(counts[pool]) {
				l.taken[pool]++
			}
		}
		if !machine.Linked {
			l.spare[machine.Offering]++
		}
	}
	return l
}

// consumes reports whether the objects show that a Machine has taken what it needs.
func (m *Machine) consumes(count Count) bool {
	return m.Provisioned || slices.ContainsFunc(m.Names, count.Consumers.Has)
}

// Take subtracts what a claim without a Machine will take, even if nothing is left.
func (l *Ledger) Take(offering string, pools []Pool) {
	if l.spare[offering] > 0 {
		l.spare[offering]--
		return
	}
	for _, pool := range pools {
		l.taken[pool]++
	}
}

// Left returns how many more claims of an offering can get a Machine, from the pool with the least. It returns
// false if the offering has no pool whose count is known.
func (l *Ledger) Left(offering string, pools []Pool) (int64, bool) {
	scarcest, known := l.scarcest(pools)
	if !known {
		return math.MaxInt32, false
	}
	return l.in(scarcest) + l.spare[offering], true
}

// Describe returns what the scarcest pool of an offering that has nothing left contains.
func (l *Ledger) Describe(pools []Pool) string {
	pool, known := l.scarcest(pools)
	if !known {
		return ""
	}
	count, taken := l.counts[pool], l.taken[pool]
	switch {
	case count.Objects == 0:
		return fmt.Sprintf("there are no %s", pool)
	case taken == 0 && count.Free == 0 && count.Numbers:
		return fmt.Sprintf("%d %s have nothing left", count.Objects, pool)
	case count.Numbers:
		return fmt.Sprintf("%d %s have %d left, for %d machines that are being launched", count.Objects, pool, count.Free, taken)
	case taken == 0 || count.Free == 0:
		return fmt.Sprintf("%d of %d %s are in use or unavailable", int64(count.Objects)-count.Free, count.Objects, pool)
	default:
		return fmt.Sprintf("%d of %d %s are free, for %d machines that are being launched", count.Free, count.Objects, pool, taken)
	}
}

// in returns how much a pool with a count has left.
func (l *Ledger) in(pool Pool) int64 { return l.counts[pool].Free - l.taken[pool] }

// scarcest returns the pool that has the least left of those with a count.
func (l *Ledger) scarcest(pools []Pool) (Pool, bool) {
	var least Pool
	found := false
	for _, pool := range pools {
		if _, known := l.counts[pool]; known && (!found || l.in(pool) < l.in(least)) {
			least, found = pool, true
		}
	}
	return least, found
}
