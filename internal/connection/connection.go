// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/samber/lo"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/karpenter-capi/karpenter-capi/internal/metrics"
)

const (
	// reopen is how long a watch may take to be opened again after its end was no failure: the API server
	// ends each watch after some minutes.
	reopen = 10 * time.Second
	// jump is by how much the wall clock must move to count as set. A clock that is slewed moves less
	// between two looks at it.
	jump = 2 * time.Second
	// brief is how long an interruption may last without being an outage.
	brief = 10 * time.Second
)

// Connection is what is known about the connection to one cluster. Its methods can be called on nil, which
// is a connection that was never disturbed.
type Connection struct {
	cluster string
	host    string
	// clock is monotonic, and wall is that of the machine, which can jump.
	clock, wall clock.PassiveClock
	// changed gets a value when an interruption begins or ends.
	changed chan event.GenericEvent

	mu sync.Mutex
	// filled is whether the caches were filled once.
	filled bool
	// starting is true until the first interruption has ended, which is the start of the process.
	starting bool
	// elected is closed when this process gains the lease, and leads is whether that was seen.
	elected <-chan struct{}
	leads   bool
	// failed is the first failure since the last answer.
	failed failure
	// ended has the watches that have ended and were not opened again.
	ended map[string]failure
	// origin is when the connection was made, by the monotonic clock.
	origin time.Time
	// ahead is by how much the wall clock was ahead of the monotonic one.
	ahead time.Duration
	// known has the watches that were open at some time.
	known        map[string]bool
	disturbances disturbances
	// interrupted is since when the connection is interrupted; zero while it is not.
	interrupted time.Time
	// outage is the time at which the last outage ended, or the wall clock jumped; zero if neither happened.
	outage time.Time
}

// failure is when something failed, and how. The zero value is no failure.
type failure struct {
	at    time.Time
	cause string
	// tolerated is for how long it does not count.
	tolerated time.Duration
}

// counts reports whether a failure is no longer tolerated.
func (f failure) counts(now time.Time) bool {
	return f.tolerated == 0 || now.Sub(f.at) > f.tolerated
}

// Error is the error of what needs a cluster that cannot be reached, or a cache that is up to date.
type Error struct {
	cluster string
	since   time.Duration
	cause   string
}

// Error names the cluster, the cause, since when, and what happens next.
func (e *Error) Error() string {
	return fmt.Sprintf("the %s cannot be reached, or the cache of it is behind, for %s: %s: nothing is decided from what the cache lacks until requests are answered and all watches are open again",
		e.cluster, e.since.Round(time.Second), e.cause)
}

// Message returns the text of an error for conditions: without what changes while an interruption lasts, so
// that a condition is written once.
func Message(err error) string {
	var interrupted *Error
	if !errors.As(err, &interrupted) {
		return err.Error()
	}
	return fmt.Sprintf("the %s cannot be reached, or the cache of it is behind: launches and deletions wait until it answers", interrupted.cluster)
}

// Names of the two clusters in metrics and messages.
const (
	Workload   = "workload"
	Management = "management"
)

// New returns the connection to a cluster, which is Workload or Management. The start of the process is a
// disturbance. clock must be monotonic. wall is the clock whose times are in objects.
func New(cluster, host string, clock, wall clock.PassiveClock) *Connection {
	now := clock.Now()
	c := &Connection{cluster: cluster, host: host, clock: clock, wall: wall, origin: now, disturbances: disturbances{last: now, noted: now}, interrupted: now, starting: true, ended: map[string]failure{}, known: map[string]bool{}, changed: make(chan event.GenericEvent, 1)}
	c.ahead = c.aheadNow()
	c.report()
	return c
}

// Changed returns a channel that gets an event without an object when an interruption begins or ends, for one
// reader. Several changes can be one event.
func (c *Connection) Changed() <-chan event.GenericEvent { return c.changed }

// Filled records that the caches of the cluster are filled.
func (c *Connection) Filled() {
	c.update(func() { c.filled = true })
}

// LeadsFrom sets a channel that is closed when this process gains the lease. Until then, the connection
// counts as just disturbed: what the previous leader has seen is not known.
func (c *Connection) LeadsFrom(elected <-chan struct{}) {
	c.update(func() { c.elected = elected })
}

// Err returns an error while the connection is interrupted; nil otherwise. It does not tell "cannot be
// reached" from "the cache is behind", because either forbids the same decisions.
func (c *Connection) Err() error {
	if c == nil {
		return nil
	}
	var err error
	c.update(func() {
		if cause, interrupted := c.cause(); interrupted {
			err = &Error{cluster: c.cluster + " cluster " + c.host, since: c.clock.Since(c.interrupted), cause: cause}
		}
	})
	return err
}

// Up returns the time since the last outage; zero during an outage. It is very long if this process has
// seen none: the start of a process is none, so that a restart does not start timers again.
func (c *Connection) Up() time.Duration {
	if c == nil {
		return forever
	}
	up := forever
	c.update(func() {
		switch {
		case !c.starting && !c.interrupted.IsZero() && c.clock.Since(c.interrupted) > brief:
			up = 0
		case !c.outage.IsZero():
			up = c.clock.Since(c.outage)
		}
	})
	return up
}

// Behind returns for how long the caches of the cluster have not followed it; zero while they do.
func (c *Connection) Behind() time.Duration {
	if c == nil {
		return 0
	}
	var behind time.Duration
	c.update(func() {
		if _, interrupted := c.cause(); interrupted {
			behind = c.clock.Since(c.interrupted)
		}
	})
	return behind
}

// forever is longer than any timer.
const forever = 10 * 365 * 24 * time.Hour

// answered records that the API server has answered a request.
func (c *Connection) answered() {
	c.update(func() { c.failed = failure{} })
}

// failedWith records a request that was not answered, or with an error that concerns the whole server.
func (c *Connection) failedWith(cause string) {
	c.update(func() {
		if c.failed == (failure{}) {
			c.failed = failure{at: c.clock.Now(), cause: cause}
		}
	})
}

// opened records that a watch was opened.
func (c *Connection) opened(watch string) {
	c.update(func() {
		c.known[watch] = true
		delete(c.ended, watch)
	})
}

// broken records that a watch failed, or could not be opened.
func (c *Connection) broken(watch, cause string) {
	c.update(func() {
		if before, found := c.ended[watch]; !found || before.tolerated > 0 {
			c.ended[watch] = failure{at: c.clock.Now(), cause: cause}
		}
	})
}

// refused records that the API server has no capacity to open a watch. Other clients get the same answer.
func (c *Connection) refused(watch, cause string) {
	c.closed(watch, cause)
	if ofMachines(watch) {
		c.update(func() { c.disturb(cause) })
	}
}

// closed records that a watch has ended without a failure, and should be opened again within reopen.
func (c *Connection) closed(watch, cause string) {
	c.update(func() {
		if _, found := c.ended[watch]; !found {
			c.ended[watch] = failure{at: c.clock.Now(), cause: cause, tolerated: reopen}
		}
	})
}

// rejected records that a watch could not be opened, such as without the right to it. A watch that was
// never open has no cache that others read.
func (c *Connection) rejected(watch, cause string) {
	c.mu.Lock()
	known := c.known[watch]
	c.mu.Unlock()
	if known {
		c.broken(watch, cause)
	}
}

// gone records that nothing opens a watch again.
func (c *Connection) gone(watch string) {
	c.update(func() { delete(c.ended, watch) })
}

// update changes what is known, and determines whether the connection is interrupted.
func (c *Connection) update(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noteState()
	c.noteJump()
	c.noteLease()
	change()
	c.noteState()
}

// noteState stores what follows from the failures that are known.
func (c *Connection) noteState() {
	c.noteDisturbance()
	c.noteInterruption()
}

// aheadNow returns by how much the wall clock is ahead of the monotonic clock.
func (c *Connection) aheadNow() time.Duration {
	return c.wall.Now().Round(0).Sub(c.origin.Round(0)) - c.clock.Since(c.origin)
}

// noteJump notices that the wall clock was set. The times in objects do not show the age of a write then, so it is a disturbance, and timers start again.
func (c *Connection) noteJump() {
	ahead := c.aheadNow()
	if moved := ahead - c.ahead; moved.Abs() > jump {
		c.ahead, c.outage = ahead, c.clock.Now()
		c.disturb("the clock of the machine was set")
	}
}

func (c *Connection) noteLease() {
	if c.leads {
		return
	}
	select {
	case <-c.elected: // never, if it is nil
		c.leads, c.disturbances.waited = true, 0
		c.disturb("this process has gained the lease")
	default:
	}
}

// noteInterruption stores the begin or the end of an interruption.
func (c *Connection) noteInterruption() {
	now := c.clock.Now()
	switch _, interrupted := c.cause(); {
	case interrupted && c.interrupted.IsZero():
		c.interrupted = now
	case !interrupted && !c.interrupted.IsZero():
		if !c.starting && now.Sub(c.interrupted) > brief {
			c.outage = now
		}
		c.interrupted, c.starting = time.Time{}, false
	default:
		return
	}
	c.report()
}

// report sets the metric and tells the controller that waits for a change.
func (c *Connection) report() {
	metrics.ClusterReachable.WithLabelValues(c.cluster).Set(lo.Ternary(c.interrupted.IsZero(), 1.0, 0.0))
	select {
	case c.changed <- event.GenericEvent{}:
	default:
	}
}

// cause returns why the connection is interrupted, and whether it is.
func (c *Connection) cause() (string, bool) {
	switch {
	case c.failed != (failure{}):
		return c.failed.cause, true
	case !c.filled:
		return "the cache is not filled yet", true
	}
	watches := make([]string, 0, len(c.ended))
	for watch, ended := range c.ended {
		if ended.counts(c.clock.Now()) {
			watches = append(watches, watch)
		}
	}
	if len(watches) == 0 {
		return "", false
	}
	first := slices.Min(watches)
	return fmt.Sprintf("%d watches are not open, such as that of %s: %s", len(watches), first, c.ended[first].cause), true
}

// Wall is the clock of the machine without its monotonic reading.
type Wall struct{ clock.RealClock }

// Now returns the time of the machine, which can jump.
func (Wall) Now() time.Time { return time.Now().Round(0) }
