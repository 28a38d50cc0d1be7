// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// fault is what happens to a component.
type fault int

const (
	// killed is a crash.
	killed fault = iota
	// paused is a process that does not run for some time, such as etcd on a slow disk.
	paused
	// outdated is a pause during which etcd is compacted and the API server restarts, so that the component cannot
	// continue its watches.
	outdated
)

// blow is one fault.
type blow struct {
	component string
	fault     fault
	// after is how long everything runs before it, and down the minimum time that the component does not run.
	after, down time.Duration
}

// plan returns the blows of a phase: the operator is killed the given number of times. If others is set, there are also
// those of others.
func plan(random *rand.Rand, kills int, others bool) []blow {
	var blows []blow
	for i := range kills {
		if others && i == 0 {
			// Its webhooks do not answer while the operator creates the first scalable resources.
			blows = append(blows, blow{stack.ClusterAPI, killed, between(random, 0, 500*time.Millisecond), between(random, 4*time.Second, 8*time.Second)})
		}
		blows = append(blows, blow{component: stack.Operator, after: between(random, 500*time.Millisecond, 7*time.Second)})
		if others {
			blows = append(blows, ofOthers(random, i, kills)...)
		}
	}
	return blows
}

// ofOthers returns what happens after one of the operator's kills: the API server is killed after a third and after
// two thirds of these, and Cluster API after half. etcd is paused after a quarter and after three quarters, and the
// operator is outdated after five sixths.
func ofOthers(random *rand.Rand, i, kills int) []blow {
	var blows []blow
	add := func(component string, fault fault, least, most time.Duration) {
		blows = append(blows, blow{component, fault, between(random, time.Second, 4*time.Second), between(random, least, most)})
	}
	switch i {
	case kills / 3, 2 * kills / 3:
		add(stack.APIServer, killed, 0, 3*time.Second)
	case kills / 2:
		add(stack.ClusterAPI, killed, 0, 5*time.Second)
	}
	switch i {
	case kills / 4, 3 * kills / 4:
		add(stack.Etcd, paused, 5*time.Second, 20*time.Second)
	case 5 * kills / 6:
		add(stack.Operator, outdated, 5*time.Second, 10*time.Second)
	}
	return blows
}

func between(random *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(random.Int64N(int64(most-least)))
}

// trouble executes the blows, and calls before with the number of each blow before it.
func (s *trial) trouble(ctx context.Context, blows []blow, before func(int) error) error {
	for i, b := range blows {
		if err := before(i); err != nil {
			return err
		}
		if err := s.deal(ctx, b); err != nil {
			return fmt.Errorf("fault %d of %d, of %s: %w", i+1, len(blows), b.component, err)
		}
		if now, err := s.Count(ctx); err == nil {
			s.Show(now)
		}
	}
	return nil
}

// deal executes one blow, and returns when the component is ready again.
func (s *trial) deal(ctx context.Context, b blow) error {
	if err := pass(ctx, b.after); err != nil {
		return err
	}
	if err := s.allRun(ctx); err != nil {
		return err
	}
	switch b.fault {
	case paused:
		return s.pause(ctx, b)
	case outdated:
		return s.outdate(ctx, b)
	}
	if err := s.KillComponent(ctx, b.component); err != nil {
		return err
	}
	if err := pass(ctx, b.down); err != nil {
		return err
	}
	return s.StartComponent(ctx, b.component)
}

// pause stops the execution of a component for some time.
func (s *trial) pause(ctx context.Context, b blow) error {
	if err := s.PauseComponent(ctx, b.component); err != nil {
		return err
	}
	err := pass(ctx, b.down)
	return errors.Join(err, s.ResumeComponent(ctx, b.component))
}

// outdate pauses a component. Meanwhile, etcd forgets everything that was changed before the pause, and the API server
// restarts, so that it does not have that either.
func (s *trial) outdate(ctx context.Context, b blow) error {
	revision, err := s.Revision(ctx)
	if err != nil {
		return err
	}
	if err := s.PauseComponent(ctx, b.component); err != nil {
		return err
	}
	err = errors.Join(pass(ctx, b.down), s.Compact(ctx, revision), s.KillComponent(ctx, stack.APIServer))
	if err == nil {
		err = s.StartComponent(ctx, stack.APIServer)
	}
	return errors.Join(err, s.ResumeComponent(ctx, b.component))
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
