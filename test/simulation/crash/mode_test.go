// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"fmt"
	"hash/fnv"
	"math/rand"
	"slices"
	"time"

	"github.com/karpenter-capi/karpenter-capi/internal/connection"
)

// mode is a way in which the simulation is adverse, derived from a seed. In the zero value caches are
// fresh, events arrive immediately, and everything acts once in a round.
type mode struct {
	name   string
	random *rand.Rand
	seed   int64
	// stale lets caches lag behind, and the process end sometimes.
	stale bool
	// withheld lets events arrive late, several as one, and peers act at any time.
	withheld bool
	// outdated lets the caches of a new process see no changes for up to outdatedBound.
	outdated bool
	// reused gives the provider ID of a Machine that no longer exists to the next.
	reused bool
	// peers lets the caches of Cluster API's controllers lag behind.
	peers bool
	// faulty lets any request have a fault.
	faulty bool
	// jumps sets the clock of the operator's machine a minute or an hour forward or back. Without stale,
	// the process does not end. With it, the process often ends at the same time: the next one cannot
	// know that the clock was set, and can run on another machine, whose clock is right.
	jumps bool
	// outages stops the API server of the management cluster for up to a minute, and workloadOutages that of the workload
	// cluster. After that, the watches of our process and of the infrastructure provider come back one by one. The
	// other cluster goes on.
	outages, workloadOutages bool
}

// modes are searched with each seed.
var modes = []mode{
	{name: "stale", stale: true},
	{name: "withheld", withheld: true},
	{name: "outdated", stale: true, outdated: true},
	{name: "reused", stale: true, reused: true},
	{name: "peers", peers: true, withheld: true},
	{name: "faulty", stale: true, faulty: true},
	{name: "jumps", withheld: true, jumps: true},
	{name: "jumps_and_crashes", stale: true, withheld: true, faulty: true, jumps: true},
	{name: "outages", stale: true, outages: true},
	{name: "workload_outages", stale: true, workloadOutages: true},
	{name: "all", stale: true, withheld: true, outdated: true, reused: true, peers: true, faulty: true, outages: true, workloadOutages: true},
}

// with returns the mode with a seed, which the zero mode does not need.
func (m mode) with(seed int64) *mode {
	if m.name != "" {
		m.seed, m.random = seed, rand.New(rand.NewSource(seed))
	}
	return &m
}

// faultAt returns the fault of one of our requests, and false if it has none. It depends on
// the key of the request, as the order of the requests of one reconcile may differ.
func (m *mode) faultAt(r request) (fault, bool) {
	if !m.faulty {
		return fault{}, false
	}
	hash := m.hash(r.key)
	if hash%20 != 0 {
		return fault{}, false
	}
	f := faults[hash/20%uint64(len(faults))]
	return f, f.concerns(r) && f.leads == 0 // core does not expect a second leader and rejected writes
}

// outdatedFor returns how long the caches of a new process see no changes.
func (m *mode) outdatedFor() time.Duration {
	if m.outdated {
		return time.Duration(m.random.Intn(int(outdatedBound/round))) * round
	}
	return 0
}

// breaks reports whether the API server of a cluster has outages.
func (m *mode) breaks(cluster string) bool {
	return cluster == connection.Management && m.outages || cluster == connection.Workload && m.workloadOutages
}

// breaksAny reports whether any API server has outages.
func (m *mode) breaksAny() bool { return m.outages || m.workloadOutages }

// staleness returns the source of randomness for caches; nil if they are fresh.
func (m *mode) staleness() *rand.Rand {
	if m.stale {
		return m.random
	}
	return nil
}

// lag returns the source of randomness for the caches of Cluster API; nil if they are fresh.
func (m *mode) lag() *rand.Rand {
	if m.peers {
		return m.random
	}
	return nil
}

// withhold returns how long an event is delayed. Further events of the same object in that time are
// merged with it.
func (m *mode) withhold() time.Duration {
	if m.withheld && m.random.Intn(2) == 0 {
		return time.Duration(m.random.Intn(10)) * round
	}
	return 0
}

// skips reports whether a peer does not act in this round.
func (m *mode) skips() bool { return m.withheld && m.random.Intn(3) == 0 }

// restarts reports whether the process ends in this round without a reason.
func (m *mode) restarts() bool { return m.stale && m.random.Intn(20) == 0 }

// slowness returns how much longer the steps of one Machine take.
func (m *mode) slowness(machine string) time.Duration {
	if m.random == nil {
		return 0
	}
	return time.Duration(m.hash(machine)%8) * round
}

// hash returns a number for a name, which differs for each seed.
func (m *mode) hash(name string) uint64 {
	hash := fnv.New64a()
	_, _ = fmt.Fprint(hash, name, " ", m.seed)
	return hash.Sum64() >> 8
}

// order returns the controllers in the order in which they act.
func (m *mode) order(controllers []*queued) []*queued {
	if !m.withheld {
		return controllers
	}
	controllers = slices.Clone(controllers)
	m.random.Shuffle(len(controllers), func(i, j int) { controllers[i], controllers[j] = controllers[j], controllers[i] })
	return controllers
}
