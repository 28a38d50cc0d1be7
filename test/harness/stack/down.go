// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Down stops all processes in reverse order, even if some have already ended, and removes the state. The logs stay
// until the next Up.
func (s *Stack) Down(ctx context.Context) error {
	if s.lock == nil {
		lock, err := s.state.lock()
		if err != nil {
			return err
		}
		s.lock = lock
	}
	defer s.release()
	var errs []error
	for _, c := range slices.Backward(s.record.Components) {
		if p, ok := findProcess(s.state, c.PIDFile); ok {
			if err := p.stop(ctx); err != nil {
				errs = append(errs, fmt.Errorf("stopping %s: %w", c.Name, err))
			}
		}
	}
	if len(errs) == 0 {
		errs = append(errs, s.state.clear())
	}
	return errors.Join(append(errs, s.closeProxies())...)
}
