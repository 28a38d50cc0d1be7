// SPDX-License-Identifier: Apache-2.0

package lanes

import (
	"container/list"
	"context"
	"sync"

	"github.com/karpenter-capi/karpenter-capi/internal/metrics"
)

// lane is a place in the order of the requests that wait.
type lane int

const (
	urgent lane = iota
	usual
	events
	lanes // their number
)

// String returns the name of a lane in metrics.
func (l lane) String() string { return [lanes]string{"urgent", "usual", "events"}[l] }

// own is how many slots each lane has for itself. Its requests continue while all others take long, such as those that wait for
// an admission webhook that does not answer. Urgent and usual requests also have the shared slots.
//
// An API server with the default limits, which are 600 requests at once, works on 49 of all users that are no service accounts,
// such as that of a kubeconfig of another cluster (20 of 245 shares), and on 245 of service accounts. With a tenth of these
// limits it works on 5 and 25, and queues the rest. If an answer takes 200 ms, 40 requests at once are 200 in a second, which is
// the rate limit of each kind (--kube-client-qps).
var own = [lanes]int{urgent: 8, usual: 8, events: 2}

const shared = 24

// Limit is the limit of the requests to one API server.
type Limit struct {
	mu sync.Mutex
	// taken is how many requests of each lane are in flight.
	taken [lanes]int
	// waiting has, by lane, a channel for each request that waits, the oldest first. It is closed when the request has a slot.
	// Requests wait only if no slot is free for their lane.
	waiting [lanes]list.List
}

// New returns the limit for one API server. The metric of the requests that wait has a series for each lane from then on.
func New() *Limit {
	for lane := range lanes {
		metrics.WaitingRequests.WithLabelValues(lane.String())
	}
	return &Limit{}
}

// acquire waits for a slot. It returns an error, and takes none, if the context ends first.
func (l *Limit) acquire(ctx context.Context, lane lane) error {
	l.mu.Lock()
	if l.free(lane) {
		l.taken[lane]++
		l.mu.Unlock()
		return nil
	}
	ready := make(chan struct{})
	place := l.waiting[lane].PushBack(ready)
	l.mu.Unlock()
	metrics.WaitingRequests.WithLabelValues(lane.String()).Inc()
	defer metrics.WaitingRequests.WithLabelValues(lane.String()).Dec()
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		l.leave(lane, place)
		return ctx.Err()
	}
}

// leave ends the wait of a request, which can have got a slot meanwhile.
func (l *Limit) leave(lane lane, place *list.Element) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-place.Value.(chan struct{}):
		l.taken[lane]--
		l.hand()
	default:
		l.waiting[lane].Remove(place)
	}
}

// release gives the slot of a request back.
func (l *Limit) release(lane lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken[lane]--
	l.hand()
}

// hand gives a slot that is free now to the next request that can have it. The caller holds the lock.
func (l *Limit) hand() {
	for lane := range lanes {
		if place := l.waiting[lane].Front(); place != nil && l.free(lane) {
			l.taken[lane]++
			close(l.waiting[lane].Remove(place).(chan struct{}))
			return
		}
	}
}

// free reports whether a slot is free for a lane. The caller holds the lock.
func (l *Limit) free(lane lane) bool {
	if l.taken[lane] < own[lane] {
		return true
	}
	beyond := max(0, l.taken[urgent]-own[urgent]) + max(0, l.taken[usual]-own[usual])
	return lane != events && beyond < shared
}
