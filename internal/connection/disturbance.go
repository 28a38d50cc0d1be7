// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"regexp"
	"time"

	"github.com/karpenter-capi/karpenter-capi/internal/metrics"
)

// Recovery is the time after a disturbance in which the caches of other clients have recovered. The watches of
// a client come back one by one, each after a backoff of up to 60 seconds (client-go:
// tools/cache/reflector.go, 30 seconds and as much jitter). The rest is for the request and for what it
// transfers.
const Recovery = 90 * time.Second

// started is the cause of the first disturbance.
const started = "the operator has started"

// disturbances is what is known about events that can hide a write or an event of Machines and MachinePools
// from a client of the cluster.
type disturbances struct {
	// hidden is what hides it at the moment; empty if nothing does.
	hidden string
	// last is the time of the last disturbance, and cause is what it was.
	last  time.Time
	cause string
	// noted is when this was last updated, and waited is for how long nothing was hidden since the last time
	// that there was no disturbance for Recovery.
	noted  time.Time
	waited time.Duration
}

// SettlesIn returns for how long the caches of other clients may still recover from disturbances, each at
// another time; zero or less if none does. That is until recovery after the last disturbance. Disturbances
// that follow each other are waited for until the cluster could be reached for limit: a provider that missed
// a write for so long will not get it by waiting either.
func (c *Connection) SettlesIn(recovery, limit time.Duration) time.Duration {
	if c == nil {
		return -forever
	}
	settles := recovery
	c.update(func() {
		if c.disturbances.hidden == "" && (c.elected == nil || c.leads) {
			settles = min(recovery-c.clock.Since(c.disturbances.last), limit-c.disturbances.waited)
		}
	})
	return settles
}

// Unsettled returns for how long the cluster could be reached since disturbances began that followed each
// other within Recovery, and what the last one was; zero if the last one is older.
func (c *Connection) Unsettled() (waited time.Duration, cause string) {
	if c == nil {
		return 0, ""
	}
	c.update(func() { waited, cause = c.disturbances.waited, c.disturbances.cause })
	return waited, cause
}

// disturb records a disturbance.
func (c *Connection) disturb(cause string) {
	c.disturbances.last, c.disturbances.cause = c.clock.Now(), cause
	metrics.ClusterDisturbances.WithLabelValues(c.cluster).Inc()
}

// noteDisturbance notices a disturbance, which lasts while something is hidden: the watches of other clients
// are opened again only after that.
func (c *Connection) noteDisturbance() {
	d, now := &c.disturbances, c.clock.Now()
	before, passed := d.hidden, now.Sub(d.noted)
	d.noted, d.hidden = now, c.hiding()
	switch {
	case d.hidden != "" && before == "":
		c.disturb(d.hidden)
	case d.hidden != "":
		d.last = now
	case now.Sub(d.last) >= Recovery:
		d.waited = 0
	default:
		d.waited += passed
	}
}

// hiding returns what can hide a write or an event of Machines and MachinePools at the moment; empty if
// nothing does.
func (c *Connection) hiding() string {
	switch {
	case c.failed != (failure{}):
		return c.failed.cause
	case !c.filled:
		return started
	}
	for watch, ended := range c.ended {
		if ofMachines(watch) && ended.counts(c.clock.Now()) {
			return "watch of " + watch + ": " + ended.cause
		}
	}
	return ""
}

// machinePaths matches the paths of Machines and MachinePools, with or without a prefix of the server.
var machinePaths = regexp.MustCompile(`/apis/cluster\.x-k8s\.io/[^/]+/(namespaces/[^/]+/)?(machines|machinepools)([/ ]|$)`)

// ofMachines reports whether a path, or what identifies a watch, is of Machines or MachinePools.
func ofMachines(path string) bool { return machinePaths.MatchString(path) }
