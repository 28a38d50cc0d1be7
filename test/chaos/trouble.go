// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/karpenter-capi/karpenter-capi/test/stack/stack"
)

// blow is one kill.
type blow struct {
	component string
	// after is how long everything runs before it, and down the minimum time that the component does not run.
	after, down time.Duration
}

// plan returns the blows of a phase: the operator is killed the given number of times. If others is set, the API server
// is also killed after a third and after two thirds of these, and Cluster API after half.
func plan(random *rand.Rand, kills int, others bool) []blow {
	between := func(least, most time.Duration) time.Duration {
		return least + time.Duration(random.Int64N(int64(most-least)))
	}
	var blows []blow
	for i := range kills {
		blows = append(blows, blow{component: stack.Operator, after: between(500*time.Millisecond, 7*time.Second)})
		if !others {
			continue
		}
		switch i {
		case kills / 3, 2 * kills / 3:
			blows = append(blows, blow{stack.APIServer, between(time.Second, 4*time.Second), between(0, 3*time.Second)})
		case kills / 2:
			blows = append(blows, blow{stack.ClusterAPI, between(time.Second, 4*time.Second), between(0, 5*time.Second)})
		}
	}
	return blows
}

// trouble executes the blows, and calls before with the number of each blow before it.
func (s *scene) trouble(ctx context.Context, blows []blow, before func(int) error) error {
	for i, b := range blows {
		if err := before(i); err != nil {
			return err
		}
		if err := s.deal(ctx, b); err != nil {
			return fmt.Errorf("kill %d of %d, of %s: %w", i+1, len(blows), b.component, err)
		}
		if now, err := s.count(ctx); err == nil {
			s.show(now)
		}
	}
	return nil
}

// deal kills a component and starts it again.
func (s *scene) deal(ctx context.Context, b blow) error {
	if err := pass(ctx, b.after); err != nil {
		return err
	}
	if err := s.allRun(ctx); err != nil {
		return err
	}
	if err := s.KillComponent(ctx, b.component); err != nil {
		return err
	}
	if err := pass(ctx, b.down); err != nil {
		return err
	}
	return s.StartComponent(ctx, b.component)
}

// pass waits. It is for the pace of the kills, or for a period that something must last, never for a condition.
func pass(ctx context.Context, period time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(period):
		return nil
	}
}
