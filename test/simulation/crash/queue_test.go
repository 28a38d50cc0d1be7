// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"maps"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// queued is one controller and its queue, like those of controller-runtime: only an event, an error or a requested time
// triggers the next call.
type queued struct {
	name string
	// kinds are those that the controller watches, and deliver passes a change of one to its event handlers. poll passes the
	// events of other sources.
	kinds     func() []string
	deliver   func(c *change, initial bool)
	poll      func()
	reconcile func(ctx context.Context, key string) (reconcile.Result, error)

	// forgets is whether nothing is tried again after an error.
	forgets bool

	// added has what the handlers of one event have added, with the delays that they want.
	added map[string]time.Duration
	due   map[string]time.Time
}

func newQueued(name string) *queued {
	return &queued{name: name, added: map[string]time.Duration{}, due: map[string]time.Time{}}
}

// note stores that a handler has added a key.
func (c *queued) note(key string, after time.Duration) {
	if before, noted := c.added[key]; !noted || after < before {
		c.added[key] = after
	}
}

// takeAdded enqueues what handlers have added, each key with another delay in addition. The order of the handlers has
// no influence.
func (c *queued) takeAdded(now time.Time, withheld func() time.Duration) {
	for _, key := range slices.Sorted(maps.Keys(c.added)) {
		c.add(key, now.Add(c.added[key]+withheld()))
	}
	clear(c.added)
}

// add enqueues a key; the earlier of two times counts.
func (c *queued) add(key string, at time.Time) {
	if due, queued := c.due[key]; !queued || at.Before(due) {
		c.due[key] = at
	}
}

// pop removes the keys that are due from the queue and returns them.
func (c *queued) pop(now time.Time) []string {
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(c.due)) {
		if !c.due[key].After(now) {
			keys = append(keys, key)
			delete(c.due, key)
		}
	}
	return keys
}

// run reconciles one key and enqueues it again if the result requests that. A time takes precedence
// over Requeue, as in controller-runtime. The rate of repeated failures does not matter, because
// the next round is a second later.
func (c *queued) run(ctx context.Context, key string, now time.Time) error {
	result, err := c.reconcile(ctx, key)
	switch {
	case err != nil && c.forgets:
	case err != nil:
		c.add(key, now.Add(round))
	case result.RequeueAfter > 0:
		c.add(key, now.Add(result.RequeueAfter))
	case result.Requeue: //nolint:staticcheck // Core still requests it this way.
		c.add(key, now.Add(round))
	}
	return err
}
