// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const pollInterval = 200 * time.Millisecond

// A Check reports whether a condition is met, and returns a description of what it found. An error is final; a
// temporary failure, such as that of an API server that is not ready, belongs in the description.
type Check func(ctx context.Context) (done bool, found string, err error)

// Await calls the check until it is done. When the time is over, the error has what was awaited and what was found
// last.
func Await(ctx context.Context, timeout time.Duration, what string, check Check) error {
	found := "nothing yet"
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := wait.PollUntilContextCancel(limited, pollInterval, true, func(ctx context.Context) (bool, error) {
		done, now, err := check(ctx)
		// A check that the deadline interrupted has no result.
		if now != "" && ctx.Err() == nil {
			found = now
		}
		if limited.Err() != nil {
			return false, nil
		}
		return done, err
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted while waiting for %s: %w", what, context.Cause(ctx))
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("waited %s for %s; last found: %s", timeout, what, found)
	default:
		return err
	}
}
