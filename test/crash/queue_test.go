// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"maps"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// controller is one reconciler and its queue, as controller-runtime has it: an
// event, an error or a time that was asked for brings the next call, and nothing
// else does.
type controller struct {
	name string
	// keys are the objects to reconcile after a change.
	keys      func(*change) []string
	reconcile func(ctx context.Context, key string) (reconcile.Result, error)

	due map[string]time.Time
}

// add enqueues a key; the earlier of two times counts.
func (c *controller) add(key string, at time.Time) {
	if due, queued := c.due[key]; !queued || at.Before(due) {
		c.due[key] = at
	}
}

// pop returns the keys that are due, and takes them out of the queue.
func (c *controller) pop(now time.Time) []string {
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(c.due)) {
		if !c.due[key].After(now) {
			keys = append(keys, key)
			delete(c.due, key)
		}
	}
	return keys
}

// run reconciles one key and enqueues it again if that is asked for. A time counts more
// than Requeue, as in controller-runtime. Whatever the pace of repeated failures is: the
// next round comes a second later.
func (c *controller) run(ctx context.Context, key string, now time.Time) error {
	result, err := c.reconcile(ctx, key)
	switch {
	case err != nil:
		c.add(key, now.Add(round))
	case result.RequeueAfter > 0:
		c.add(key, now.Add(result.RequeueAfter))
	case result.Requeue: //nolint:staticcheck // Core still asks for it this way.
		c.add(key, now.Add(round))
	}
	return err
}
