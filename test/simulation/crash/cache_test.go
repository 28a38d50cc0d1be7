// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"math/rand"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// staleBound is how long a cache of our process can withhold changes at a time.
const staleBound = 5 * time.Second

// outdatedBound is how long all caches of a new process can see nothing, if it started with an API
// server that is behind.
const outdatedBound = 20 * time.Second

// kinds are the kinds in the cache of our process. Each lags independently.
var kinds = []string{
	"Cluster", "InstanceTypeCatalog", "KarpenterMachineTemplate", "Machine", "MachineDeployment", "MachinePool", "MachineSet", "Node", "NodeClaim", "NodePool", "PartialObjectMetadata",
	infrastructureKind, groupKind + "Template", groupKind, instanceKind,
}

// workloadKinds are the kinds among them that are in the workload cluster.
var workloadKinds = []string{"InstanceTypeCatalog", "KarpenterMachineTemplate", "Node", "NodeClaim", "NodePool"}

// cache is the cache of our process or of an infrastructure provider: for each kind the state after
// one of the past changes.
type cache struct {
	server *server
	kinds  []string
	bound  time.Duration
	view   view
	at     map[string]int       // the number of changes seen, by kind
	frozen map[string]time.Time // until when a kind sees nothing
	// outdated is until when no kind sees anything, however old the cache becomes.
	outdated time.Time
	// halfBlind is whether that affects only the kinds of the workload cluster.
	halfBlind bool
}

// newCache returns a cache that was filled now. With a source of randomness, each kind except the
// known ones has its state of some seconds ago, as an API server's own cache can return it.
func newCache(s *server, kinds []string, bound time.Duration, stale *rand.Rand, known []string) *cache {
	c := &cache{server: s, kinds: kinds, bound: bound, view: view{}, at: map[string]int{}, frozen: map[string]time.Time{}}
	for _, kind := range kinds {
		c.view[kind] = map[string]client.Object{}
		var old time.Duration
		if stale != nil && !slices.Contains(known, kind) {
			old = time.Duration(stale.Intn(int(bound/round))) * round
		}
		for _, change := range s.log[kind] {
			if s.clock.Since(change.at) >= old {
				c.apply(change)
			}
		}
	}
	return c
}

func (c *cache) apply(change *change) {
	c.at[change.kind]++
	if change.after == nil {
		delete(c.view[change.kind], change.name)
	} else {
		c.view[change.kind][change.name] = change.after
	}
}

// catchUp lets the cache see changes, and calls notify for each. With a source of randomness it
// sees some of them, and a kind can then see nothing for some seconds.
func (c *cache) catchUp(stale *rand.Rand, notify func(*change)) {
	now := c.server.clock.Now()
	for _, kind := range c.kinds {
		if now.Before(c.outdated) && (!c.halfBlind || slices.Contains(workloadKinds, kind)) || now.Before(c.frozen[kind]) {
			continue
		}
		unseen := c.server.log[kind][c.at[kind]:]
		some := len(unseen)
		if stale != nil && stale.Intn(4) == 0 {
			some = stale.Intn(some + 1)
			c.frozen[kind] = now.Add(time.Duration(1+stale.Intn(int(c.bound/round))) * round)
		}
		for i, change := range unseen {
			if i >= some && now.Sub(change.at) < c.bound {
				break
			}
			c.apply(change)
			notify(change)
		}
	}
}
