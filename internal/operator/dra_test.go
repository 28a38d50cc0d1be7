// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"
	coreoptions "sigs.k8s.io/karpenter/pkg/operator/options"
)

// An API server without the API of ResourceClaims, such as that of Kubernetes 1.33, lets Karpenter ignore them. Any other failure
// decides nothing.
func TestIgnoreUnserved(t *testing.T) {
	const all = `{"kind":"APIResourceList","groupVersion":"resource.k8s.io/v1","resources":[{"name":"deviceclasses"},{"name":"resourceclaims"},{"name":"resourceclaimtemplates"},{"name":"resourceslices"}]}`
	for name, tc := range map[string]struct {
		status   int
		answer   string
		given    bool
		want     bool
		fails    bool
		requests int
	}{
		"served":         {status: http.StatusOK, answer: all, requests: 1},
		"a kind lacks":   {status: http.StatusOK, answer: `{"kind":"APIResourceList","groupVersion":"resource.k8s.io/v1","resources":[{"name":"resourceslices"}]}`, want: true, requests: 1},
		"not served":     {status: http.StatusNotFound, want: true, requests: 1},
		"no answer":      {status: http.StatusForbidden, fails: true, requests: 1},
		"ignored anyway": {given: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			requests := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if requests++; r.URL.Path != "/apis/resource.k8s.io/v1" {
					t.Errorf("unexpected request for %s", r.URL.Path)
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(tc.status)
				_, _ = w.Write([]byte(tc.answer))
			}))
			defer server.Close()
			options := &coreoptions.Options{IgnoreDRARequests: tc.given}
			err := ignoreUnserved(t.Context(), &rest.Config{Host: server.URL}, options)
			if (err != nil) != tc.fails || options.IgnoreDRARequests != tc.want || requests != tc.requests {
				t.Errorf("got %v, %t and %d requests", err, options.IgnoreDRARequests, requests)
			}
		})
	}
}
