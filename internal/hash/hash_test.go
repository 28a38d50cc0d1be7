// SPDX-License-Identifier: Apache-2.0

package hash_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/karpenter-capi/karpenter-capi/internal/hash"
)

// TestOf pins hashes, because clusters have them stored.
func TestOf(t *testing.T) {
	for name, tc := range map[string]struct {
		values []any
		want   string
	}{
		"nothing":        {nil, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		"two values":     {[]any{"a", 1}, "5d5e06e867c8da8497b14e4649f65792cf92cc93c0825702088159cd37a9dd5c"},
		"one value":      {[]any{"a1"}, "293def4a5856e01c69acdff32a751b157515cc9c310a4e7a7a107395c51dd92b"},
		"a sorted map":   {[]any{map[string]string{"b": "2", "a": "1"}}, "971995fb6dec39908056a86b8fedf359c15e9ba8e04a345a7be887b382f894ab"},
		"a quantity":     {[]any{resource.MustParse("1024Mi")}, "2fd19ba7b45047f55c8eca3b96c5d30d081f1bec2f451ac383d866e8d3daec63"},
		"the same again": {[]any{resource.MustParse("1Gi")}, "2fd19ba7b45047f55c8eca3b96c5d30d081f1bec2f451ac383d866e8d3daec63"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := hash.Of(tc.values...); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
