// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"time"

	"k8s.io/utils/clock"
)

// Wall is the clock of the machine without its monotonic reading.
type Wall struct{ clock.RealClock }

// Now returns the time of the machine, which can jump.
func (Wall) Now() time.Time { return time.Now().Round(0) }
