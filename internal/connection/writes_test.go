// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/utils/clock"

	"github.com/karpenter-capi/karpenter-capi/internal/metrics"
)

type answers struct{}

func (answers) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func TestWritesAreCounted(t *testing.T) {
	type labels [4]string // group, resource, subresource, verb
	for name, tc := range map[string]struct {
		method, url string
		want        labels // zero if nothing is counted
	}{
		"a link":                    {"PATCH", "/apis/cluster.x-k8s.io/v1beta2/namespaces/a/machines/m", labels{"cluster.x-k8s.io", "machines", "", "patch"}},
		"a status":                  {"PATCH", "/apis/karpenter.sh/v1/nodeclaims/c/status", labels{"karpenter.sh", "nodeclaims", "status", "patch"}},
		"an eviction":               {"POST", "/api/v1/namespaces/a/pods/p/eviction", labels{"", "pods", "eviction", "create"}},
		"a Namespace":               {"DELETE", "/api/v1/namespaces/a", labels{"", "namespaces", "", "delete"}},
		"an object in a Namespace":  {"POST", "/api/v1/namespaces/a/events", labels{"", "events", "", "create"}},
		"a server with a prefix":    {"PUT", "/clusters/c/apis/coordination.k8s.io/v1/namespaces/a/leases/l", labels{"coordination.k8s.io", "leases", "", "update"}},
		"a dry run":                 {"POST", "/apis/cluster.x-k8s.io/v1beta2/namespaces/a/machines?dryRun=All", labels{}},
		"a read":                    {"GET", "/apis/cluster.x-k8s.io/v1beta2/namespaces/a/machines/m", labels{}},
		"something that is no kind": {"POST", "/version", labels{}},
	} {
		t.Run(name, func(t *testing.T) {
			metrics.APIWrites.Reset()
			transport := New(Management, "", clock.RealClock{}, clock.RealClock{}).Transport(answers{})
			response, err := transport.RoundTrip(httptest.NewRequest(tc.method, tc.url, nil))
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			want := 0
			if tc.want != (labels{}) {
				want = 1
				if got := testutil.ToFloat64(metrics.APIWrites.WithLabelValues(Management, tc.want[0], tc.want[1], tc.want[2], tc.want[3])); got != 1 {
					t.Errorf("counted %v of %v, want 1", got, tc.want)
				}
			}
			if got := testutil.CollectAndCount(metrics.APIWrites); got != want {
				t.Errorf("got %d series, want %d", got, want)
			}
		})
	}
}
