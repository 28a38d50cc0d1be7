// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestContractVersion(t *testing.T) {
	for name, tc := range map[string]struct {
		labels map[string]string
		want   string // empty if Cluster API cannot use the kind
	}{
		"no labels":            {},
		"another label":        {labels: map[string]string{"cluster.x-k8s.io/provider": "infrastructure-aws"}},
		"one version":          {labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta1"}, want: "v1beta1"},
		"the latest version":   {labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1alpha3_v1beta10_v1beta2"}, want: "v1beta10"},
		"a stable version":     {labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta9_v1_v1alpha1"}, want: "v1"},
		"an earlier contract":  {labels: map[string]string{"cluster.x-k8s.io/v1beta1": "v1alpha4"}, want: "v1alpha4"},
		"the later contract":   {labels: map[string]string{"cluster.x-k8s.io/v1beta1": "v1", "cluster.x-k8s.io/v1beta2": "v1beta1"}, want: "v1beta1"},
		"a contract too early": {labels: map[string]string{"cluster.x-k8s.io/v1alpha4": "v1alpha4"}},
		"an empty label":       {labels: map[string]string{"cluster.x-k8s.io/v1beta2": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := contractVersion(schema.GroupKind{Group: "infrastructure.cluster.x-k8s.io", Kind: "X"}, tc.labels)
			if ok != (tc.want != "") || got.Version != tc.want {
				t.Errorf("got %q and %t, want %q", got.Version, ok, tc.want)
			}
		})
	}
}
