// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestFindCluster(t *testing.T) {
	for name, tc := range map[string]struct {
		exist           []string // namespace/name
		namespace, name string
		want, wantError string
	}{
		"both are set":                 {exist: []string{"a/x", "b/y"}, namespace: "a", name: "x", want: "a/x"},
		"both are set, does not exist": {namespace: "a", name: "x", want: "a/x"},
		"the only one":                 {exist: []string{"a/x"}, want: "a/x"},
		"the only one of a namespace":  {exist: []string{"a/x", "b/y"}, namespace: "b", want: "b/y"},
		"the only one with a name":     {exist: []string{"a/x", "b/y"}, name: "y", want: "b/y"},
		"none":                         {wantError: "expected exactly one Cluster, found none: set --cluster-name and --cluster-namespace"},
		"two":                          {exist: []string{"b/y", "a/x"}, wantError: "expected exactly one Cluster, found a/x, b/y: set"},
		"none with the name":           {exist: []string{"b/y", "a/x"}, name: "z", wantError: "expected exactly one Cluster named z, found a/x, b/y: set"},
		"two with one name":            {exist: []string{"a/x", "b/x"}, name: "x", wantError: "expected exactly one Cluster named x, found a/x, b/x: set"},
	} {
		t.Run(name, func(t *testing.T) {
			builder := fake.NewClientBuilder().WithScheme(scheme.Scheme)
			for _, cluster := range tc.exist {
				namespace, name, _ := strings.Cut(cluster, "/")
				builder = builder.WithObjects(&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
			}
			got, err := FindCluster(context.Background(), builder.Build(), tc.namespace, tc.name)
			if tc.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantError) {
					t.Errorf("got %v, want %q", err, tc.wantError)
				}
				return
			}
			if err != nil || got.String() != tc.want {
				t.Errorf("got %s and %v, want %s", got, err, tc.want)
			}
		})
	}
}
