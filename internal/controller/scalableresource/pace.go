// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// Replicas of one resource are raised at most once in minPace, because Cluster API reconciles a
	// MachineDeployment once a second (util/controller/controller.go).
	minPace = time.Second
	// pacePerReplica is by how much the next raise is later for each replica that was added within
	// burstWindow, so that the writes for a burst hardly grow with its size.
	pacePerReplica = 4 * time.Millisecond
	// maxPace is the longest time between two raises.
	maxPace = 4 * time.Second
	// burstWindow is how long a raise counts. It is twice maxPace, so that a burst always counts its last
	// raise, and not longer: claims that come one after the other are no burst, however long that lasts.
	burstWindow = 2 * maxPace
)

// pace keeps the writes that raise the replicas of one resource apart, so that a burst of claims needs few
// of them. It depends on how many replicas were added recently, and not on for how long. It decides
// nothing else, so a restart may forget it.
type pace struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// raises has the raises of each resource that count, oldest first.
	raises map[string][]raise
}

// raise is one write that raised replicas.
type raise struct {
	at time.Time
	by int32
}

func newPace(clock clock.PassiveClock) *pace {
	return &pace{clock: clock, raises: map[string][]raise{}}
}

// wait returns for how long the replicas of a resource may not be raised.
func (p *pace) wait(resource string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	counted := p.counted(resource)
	if len(counted) == 0 {
		return 0
	}
	var added time.Duration
	for _, r := range counted {
		added += time.Duration(r.by)
	}
	interval := min(max(added*pacePerReplica, minPace), maxPace)
	return interval - p.clock.Since(counted[len(counted)-1].at)
}

// note stores that the replicas of a resource were raised.
func (p *pace) note(resource string, by int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.raises[resource] = append(p.counted(resource), raise{at: p.clock.Now(), by: by})
}

// forget removes what is known of a resource.
func (p *pace) forget(resource string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.raises, resource)
}

// counted returns the raises of a resource within burstWindow, and forgets the others. One in the future does
// not count: the clock was set back.
func (p *pace) counted(resource string) []raise {
	counted := slices.DeleteFunc(p.raises[resource], func(r raise) bool {
		age := p.clock.Since(r.at)
		return age < 0 || age >= burstWindow
	})
	if len(counted) == 0 {
		delete(p.raises, resource)
		return nil
	}
	p.raises[resource] = counted
	return counted
}
