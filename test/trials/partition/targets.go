// SPDX-License-Identifier: Apache-2.0

package partition

import "github.com/karpenter-capi/karpenter-capi/test/trials/scene"

// steps is the number of steps in which the Pods of a round come and go.
const steps = 5

// targets returns the number of Pods of each Deployment after a step of a round, of which step 0 is the end of the round
// before. In even rounds, the Deployments with even numbers shrink and the others grow, and in odd rounds the reverse. So
// none does both in one round, and no new Pod comes to a Node that Karpenter is deleting because it was empty.
func targets(pods, round, step int) []int {
	large := scene.Spread(pods)
	counts := make([]int, len(large))
	for i := range large {
		small := large[i] / 4
		change := (large[i] - small) * step / steps
		if i%2 == round%2 {
			counts[i] = large[i] - change
		} else {
			counts[i] = small + change
		}
	}
	return counts
}
