// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/audit"
)

// requestKind is a sort of request of a component with its result.
type requestKind struct {
	// Component is the user agent without its version, such as karpenter-capi.
	Component string `json:"component"`

	Verb     string `json:"verb"`
	Resource string `json:"resource"`
	Code     int    `json:"code"`
}

// requestCount is how many requests of a kind were sent during the scale-up and the scale-down.
type requestCount struct {
	requestKind
	Up   int `json:"up"`
	Down int `json:"down"`
}

// unmeasured are the user agents of those who only measure, and of the API server itself.
var unmeasured = []string{"bench", "trials", "kube-apiserver", "kubectl"}

// requestCounts counts the requests of all components, without watches and the lists of informers, and without leases. The
// kinds are sorted, the most frequent first.
func requestCounts(up, down []audit.Entry) []requestCount {
	counts := map[requestKind]*requestCount{}
	add := func(entries []audit.Entry, field func(*requestCount) *int) {
		for i := range entries {
			entry := &entries[i]
			kind := kindOf(entry)
			if ofInformer(entry) || kind.Resource == "leases" || slices.Contains(unmeasured, kind.Component) {
				continue
			}
			if counts[kind] == nil {
				counts[kind] = &requestCount{requestKind: kind}
			}
			*field(counts[kind])++
		}
	}
	add(up, func(c *requestCount) *int { return &c.Up })
	add(down, func(c *requestCount) *int { return &c.Down })
	sorted := make([]requestCount, 0, len(counts))
	for _, count := range counts {
		sorted = append(sorted, *count)
	}
	slices.SortFunc(sorted, func(a, b requestCount) int {
		return cmp.Or(cmp.Compare(b.Up+b.Down, a.Up+a.Down), cmp.Compare(a.Component, b.Component), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Code, b.Code))
	})
	return sorted
}

func kindOf(entry *audit.Entry) requestKind {
	resource := entry.ObjectRef.Resource
	if entry.ObjectRef.Subresource != "" {
		resource += "/" + entry.ObjectRef.Subresource
	}
	if ofAllClaims(entry) {
		resource += " of all claims"
	}
	component, _, _ := strings.Cut(entry.UserAgent, "/")
	return requestKind{Component: component, Verb: entry.Verb, Resource: resource, Code: entry.ResponseStatus.Code}
}

// ofAllClaims reports whether the request lists the Machines of all claims, which the operator does once when it starts.
func ofAllClaims(entry *audit.Entry) bool {
	uri, err := url.Parse(entry.RequestURI)
	if err != nil || entry.Verb != "list" {
		return false
	}
	selector := uri.Query().Get("labelSelector")
	return strings.Contains(selector, v1alpha1.NodeClaimUIDLabel) && !strings.Contains(selector, v1alpha1.NodeClaimUIDLabel+"=")
}

// ofInformer reports whether an informer sent the request: a watch, or the list before it, which is the only list with a
// resourceVersion or in pages.
func ofInformer(entry *audit.Entry) bool {
	if entry.Verb == "watch" {
		return true
	}
	uri, err := url.Parse(entry.RequestURI)
	if entry.Verb != "list" || err != nil {
		return false
	}
	query := uri.Query()
	return query.Has("resourceVersion") || query.Has("limit")
}

// sum returns the number of requests of the kinds that are selected.
func sum(counts []requestCount, selected func(requestKind) bool) int {
	total := 0
	for _, count := range counts {
		if selected(count.requestKind) {
			total += count.Up + count.Down
		}
	}
	return total
}

// isRefused reports whether the API server has refused the request because it is busy. It has then read and written
// nothing, and the client sends the request again.
func isRefused(kind requestKind) bool { return kind.Code == http.StatusTooManyRequests }

// isLiveRead reports whether the request reads from the API server and not from a cache.
func isLiveRead(kind requestKind) bool { return isRead(kind) && !isRefused(kind) }

// isWrite reports whether the request writes, or fails to write what has changed.
func isWrite(kind requestKind) bool { return !isRead(kind) && !isRefused(kind) }

func isRead(kind requestKind) bool { return kind.Verb == "get" || kind.Verb == "list" }

// perClaim are the resources of which there is one object for each claim.
var perClaim = []string{"nodeclaims", "machines", "simulatedmachines", "nodes"}

// isLiveReadOfClaim reports whether the request is a live read of a claim, its Machine, its instance or its Node.
func isLiveReadOfClaim(kind requestKind) bool {
	return isLiveRead(kind) && slices.Contains(perClaim, kind.Resource)
}

// isMachineWrite reports whether the request writes a Machine.
func isMachineWrite(kind requestKind) bool {
	return kind.Resource == "machines" && isWrite(kind)
}

// isScalableWrite reports whether the request writes a MachineDeployment or an object that it was generated from.
func isScalableWrite(kind requestKind) bool {
	return isWrite(kind) && slices.Contains([]string{"machinedeployments", "simulatedmachinetemplates"}, kind.Resource)
}

// isMachineConflict reports whether the request is a write of a Machine that had changed since it was read. The API
// server answers a precondition that fails with 409, and a patch that no longer fits with 422.
func isMachineConflict(kind requestKind) bool {
	return isMachineWrite(kind) && (kind.Code == http.StatusConflict || kind.Code == http.StatusUnprocessableEntity)
}

// isClaimWrite reports whether the request writes a NodeClaim or its status.
func isClaimWrite(kind requestKind) bool {
	return (kind.Resource == "nodeclaims" || kind.Resource == "nodeclaims/status") && isWrite(kind)
}
