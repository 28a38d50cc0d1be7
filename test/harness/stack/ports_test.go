// SPDX-License-Identifier: Apache-2.0

package stack

import "testing"

// TestFreePorts asks for ports many times without listening on them, as stacks do that start at the same time.
func TestFreePorts(t *testing.T) {
	seen := map[int]bool{}
	for range 200 {
		ports, err := FreePorts(10)
		if err != nil {
			t.Fatal(err)
		}
		for _, port := range ports {
			if seen[port] {
				t.Fatalf("port %d was returned twice", port)
			}
			seen[port] = true
		}
	}
}
