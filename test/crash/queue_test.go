// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"maps"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// controller is one reconciler and its queue, like those of controller-runtime: only an event, an
// error or a requested time triggers the next call.
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

// pop removes the keys that are due from the queue and returns them.
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

// run reconciles one key and enqueues it again if the result requests that. A time takes precedence
// over Requeue, as in controller-runtime. The rate of repeated failures does not matter, because
// the next round is a second later.
func (c *controller) run(ctx context.Context, key string, now time.Time) error {
	result, err := c.reconcile(ctx, key)
	switch {
	case err != nil:
		c.add(key, now.Add(round))
	case result.RequeueAfter > 0:
		c.add(key, now.Add(result.RequeueAfter))
	case result.Requeue: //nolint:staticcheck // Core still requests it this way.
		c.add(key, now.Add(round))
	}
	return err
}
