// SPDX-License-Identifier: Apache-2.0

package partition

import (
	"slices"
	"testing"
)

func TestTargets(t *testing.T) {
	const pods = 60
	for round := range 8 {
		before := targets(pods, round, 0)
		// A round begins where the one before ended.
		if round > 0 && !slices.Equal(before, targets(pods, round-1, steps)) {
			t.Errorf("round %d begins with %v, and the one before ended with %v", round, before, targets(pods, round-1, steps))
		}
		for step := 1; step <= steps; step++ {
			after := targets(pods, round, step)
			grew, shrank := 0, 0
			for i := range after {
				change := after[i] - before[i]
				if shrinks := i%2 == round%2; shrinks && change > 0 || !shrinks && change < 0 {
					t.Errorf("in step %d of round %d, Deployment %d changes by %d, against its direction", step, round, i, change)
				}
				grew, shrank = grew+max(0, change), shrank+max(0, -change)
			}
			if grew == 0 || shrank == 0 {
				t.Errorf("in step %d of round %d, %d Pods come and %d go, want both", step, round, grew, shrank)
			}
			before = after
		}
	}
}
