// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"hash/fnv"
	"math/rand"
	"slices"
	"time"
)

// mode is in what way the world is unkind, from a seed. The zero value is kind:
// caches are fresh, events come at once, and everybody acts once in a round.
type mode struct {
	random *rand.Rand
	seed   int64
	// stale lets caches lag behind.
	stale bool
	// withheld lets events come late, several as one, and peers act when they like.
	withheld bool
}

// staleness is the source of randomness for caches; nil if they are fresh.
func (m *mode) staleness() *rand.Rand {
	if m.stale {
		return m.random
	}
	return nil
}

// withhold is for how long an event does not arrive. More of the same object that
// come meanwhile are one with it.
func (m *mode) withhold() time.Duration {
	if m.withheld && m.random.Intn(2) == 0 {
		return time.Duration(m.random.Intn(10)) * round
	}
	return 0
}

// skips tells whether a peer does not act in this round.
func (m *mode) skips() bool { return m.withheld && m.random.Intn(3) == 0 }

// restarts tells whether the process ends in this round, for no reason.
func (m *mode) restarts() bool { return m.stale && m.random.Intn(20) == 0 }

// slowness is by how much longer the steps of one Machine take.
func (m *mode) slowness(machine string) time.Duration {
	if m.random == nil {
		return 0
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(machine))
	return time.Duration((hash.Sum64()^uint64(m.seed*7919))%8) * round
}

// order returns the controllers in the order in which they get their turn.
func (m *mode) order(controllers []*controller) []*controller {
	if !m.withheld {
		return controllers
	}
	controllers = slices.Clone(controllers)
	m.random.Shuffle(len(controllers), func(i, j int) { controllers[i], controllers[j] = controllers[j], controllers[i] })
	return controllers
}
