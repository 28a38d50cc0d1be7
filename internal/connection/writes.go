// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"net/http"
	"regexp"

	"github.com/karpenter-capi/karpenter-capi/internal/metrics"
)

// verbs are the verbs of write requests by HTTP method.
var verbs = map[string]string{http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete"}

// writePath matches the path of an object or of its kind: group, resource and subresource. The server can have a prefix.
var writePath = regexp.MustCompile(`/(?:api|apis/([^/]+))/v[^/]+/(?:namespaces/[^/]+/)?([^/]+)(?:/[^/]+(?:/([^/]+))?)?/?$`)

// countWrite counts a write request. Dry runs write nothing.
func (c *Connection) countWrite(request *http.Request) {
	verb, writes := verbs[request.Method]
	if !writes || request.URL.Query().Has("dryRun") {
		return
	}
	if of := writePath.FindStringSubmatch(request.URL.Path); of != nil {
		metrics.APIWrites.WithLabelValues(c.cluster, of[1], of[2], of[3], verb).Inc()
	}
}
