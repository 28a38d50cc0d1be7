// SPDX-License-Identifier: Apache-2.0

package scene

import "testing"

func TestSpread(t *testing.T) {
	for _, pods := range []int{0, 1, 30, 75, 150, 200} {
		sum := 0
		for i, count := range Spread(pods) {
			if sum += count; pods >= 30 && count == 0 {
				t.Errorf("of %d Pods, Deployment %s gets none, so its offering is not used", pods, Workloads[i].Name)
			}
		}
		if sum != pods {
			t.Errorf("%d Pods are spread, want %d", sum, pods)
		}
	}
}
