// SPDX-License-Identifier: Apache-2.0

package build

import "testing"

func TestRange(t *testing.T) {
	tested := Range{Oldest: "v1.34", Newest: "v1.36"}
	for version, want := range map[string]bool{
		"v1.33.9": false, "v1.34.0": true, "v1.34.0-rc.1": true, "v1.35.2-eks-1a2b3c": true, "v1.36.9+k3s1": true, "v1.37.0": false, "v2.35.0": false,
		"": false, "latest": false,
	} {
		if got := tested.Has(version); got != want {
			t.Errorf("%q: got %t, want %t", version, got, want)
		}
	}
}
