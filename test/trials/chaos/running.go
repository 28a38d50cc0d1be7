// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"
)

// allRun returns an error if a component has ended that was not killed here.
func (s *trial) allRun(ctx context.Context) error {
	for _, component := range s.Status(ctx) {
		if component.PID == 0 {
			return fmt.Errorf("%s has ended unexpectedly; the last lines of %s:\n%s", component.Name, component.LogFile, component.LogTail(20))
		}
	}
	return nil
}
