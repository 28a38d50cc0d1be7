// SPDX-License-Identifier: Apache-2.0

package lanes

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Transport returns a transport whose requests wait until they are within the limit. It is given to rest.Config.Wrap
// after transports that judge answers, because a request that waits in vain says nothing about the API server.
func (l *Limit) Transport(next http.RoundTripper) http.RoundTripper {
	return &transport{limit: l, next: next}
}

type transport struct {
	limit *Limit
	next  http.RoundTripper
}

// WrappedRoundTripper returns the transport that this one wraps, so that others can find it.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip sends a request when it has a slot, which ends with the body of the answer.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if isFree(request) {
		return t.next.RoundTrip(request)
	}
	lane := laneOf(request)
	if err := t.limit.acquire(request.Context(), lane); err != nil {
		if request.Body != nil {
			_ = request.Body.Close() // as each transport must
		}
		return nil, fmt.Errorf("waiting while as many requests as allowed are in flight: %w", err)
	}
	release := sync.OnceFunc(func() { t.limit.release(lane) })
	response, err := t.next.RoundTrip(request)
	if err != nil {
		release()
		return response, err
	}
	response.Body = &body{ReadCloser: response.Body, end: release}
	return response, nil
}

// body is the body of an answer.
type body struct {
	io.ReadCloser
	end func()
}

// Read reads the answer, and gives the slot back at its end.
func (b *body) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if err != nil {
		b.end()
	}
	return n, err
}

// Close ends the answer, and gives the slot back.
func (b *body) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

// isFree reports whether a request does not count.
func isFree(request *http.Request) bool {
	watch := request.URL.Query().Get("watch")
	return watch == "true" || watch == "1" || groupOf(request) == "coordination.k8s.io"
}

// eventPaths matches the paths of events, with or without a prefix of the server.
var eventPaths = regexp.MustCompile(`/(api|apis/events\.k8s\.io)/[^/]+/(namespaces/[^/]+/)?events(/|$)`)

// laneOf returns the lane of a request. Core reads from caches and sends no JSON Patches, so reads and JSON Patches are of the
// operator's own code, or a cache is being filled.
func laneOf(request *http.Request) lane {
	switch {
	case request.Method == http.MethodGet:
		return urgent
	case eventPaths.MatchString(request.URL.Path):
		return events
	case strings.HasSuffix(groupOf(request), "cluster.x-k8s.io"), request.Header.Get("Content-Type") == string(types.JSONPatchType):
		return urgent
	}
	return usual
}

// groupOf returns the API group of a request; empty for the core group.
func groupOf(request *http.Request) string {
	_, after, _ := strings.Cut(request.URL.Path, "/apis/")
	group, _, _ := strings.Cut(after, "/")
	return group
}
