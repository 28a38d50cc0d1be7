// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"slices"
	"time"
)

const (
	// Replicas of one resource are raised at most once in minPace. Cluster API reconciles a MachineDeployment once a
	// second (util/controller/controller.go), at times that this operator does not know.
	minPace = 500 * time.Millisecond
	// pacePerReplica is by how much the next raise is later for each replica that was added within
	// burstWindow, so that the writes for a burst hardly grow with its size.
	pacePerReplica = 4 * time.Millisecond
	// maxPace is the longest time between two raises.
	maxPace = 4 * time.Second
	// burstWindow is how long a raise counts. It is twice maxPace, so that a burst always counts its last
	// raise, and not longer: claims that come one after the other are no burst, however long that lasts.
	burstWindow = 2 * maxPace
)

// pace keeps the writes that raise the replicas of a resource apart, so that a burst of claims needs few
// of them. It depends on how many replicas were added recently, and not on for how long. It decides
// nothing else, so a restart may forget it. It has the raises that count, oldest first.
type pace []raise

// raise is one write that raised replicas.
type raise struct {
	at time.Time
	by int32
}

// wait returns for how long the replicas may not be raised.
func (p *pace) wait(now time.Time) time.Duration {
	p.forgetOld(now)
	if len(*p) == 0 {
		return 0
	}
	var added time.Duration
	for _, r := range *p {
		added += time.Duration(r.by)
	}
	interval := min(max(added*pacePerReplica, minPace), maxPace)
	return interval - now.Sub((*p)[len(*p)-1].at)
}

// note stores that the replicas were raised.
func (p *pace) note(now time.Time, by int32) {
	p.forgetOld(now)
	*p = append(*p, raise{at: now, by: by})
}

// forgetOld drops the raises that do not count: those before burstWindow, and those in the future, because the clock was
// set back.
func (p *pace) forgetOld(now time.Time) {
	*p = slices.DeleteFunc(*p, func(r raise) bool {
		age := now.Sub(r.at)
		return age < 0 || age >= burstWindow
	})
}
