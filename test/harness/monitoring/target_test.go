// SPDX-License-Identifier: Apache-2.0

package monitoring

import "testing"

func TestFill(t *testing.T) {
	target := Target{Namespace: "karpenter", Job: "operator"}
	for query, tc := range map[string]struct {
		want   string
		failed bool
	}{
		"up": {want: "up"},
		`rate(a{namespace="$namespace", job="$job"}[5m])`: {want: `rate(a{namespace="karpenter", job="operator"}[5m])`},
		`a{node="$node"}`: {want: `a{node="$node"}`, failed: true},
	} {
		got, err := target.Fill(query)
		if got != tc.want || (err != nil) != tc.failed {
			t.Errorf("%s: got %s and the error %v, want %s", query, got, err, tc.want)
		}
	}
}
