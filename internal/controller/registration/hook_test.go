// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWithLabels(t *testing.T) {
	for name, tc := range map[string]struct {
		labels, given map[string]string
		keys          []string
		want          map[string]string
	}{
		"none":            {want: map[string]string{}},
		"others stay":     {labels: map[string]string{"a": "1"}, given: map[string]string{"b": "2"}, keys: nil, want: map[string]string{"a": "1"}},
		"a wrong value":   {labels: map[string]string{"a": "1", "disk": "hdd"}, given: map[string]string{"disk": "ssd"}, keys: []string{"disk"}, want: map[string]string{"a": "1", "disk": "ssd"}},
		"a removed label": {labels: map[string]string{"a": "1", "disk": "hdd"}, keys: []string{"disk"}, want: map[string]string{"a": "1"}},
		"a new label":     {labels: nil, given: map[string]string{"disk": "ssd"}, keys: []string{"disk"}, want: map[string]string{"disk": "ssd"}},
		"not well-known":  {labels: map[string]string{"arch": "x"}, given: map[string]string{"arch": "y", "disk": "ssd"}, keys: []string{"disk"}, want: map[string]string{"arch": "x", "disk": "ssd"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, withLabels(tc.labels, tc.given, tc.keys)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
