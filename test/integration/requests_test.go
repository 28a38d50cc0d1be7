// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// request is one request to the API server.
type request struct {
	method string
	path   string
	watch  bool
	// dryRun reports whether nothing is stored.
	dryRun bool
	body   string
	// status of the response; 0 if there was none.
	status int
	// forbidden is whether the operator has no right to do this.
	forbidden bool
}

func (r request) String() string {
	return fmt.Sprintf("%s %s %d %s", r.method, r.path, r.status, r.body)
}

// write reports whether the request changed an object, or tried to. Events do not count: they
// report changes, and core publishes them at any time.
func (r request) write() bool {
	return r.method != http.MethodGet && !strings.Contains(r.path, "/events")
}

// accepted reports whether the API server accepted the request.
func (r request) accepted() bool {
	return r.status >= 200 && r.status < 300
}

// requestLog records requests. Its zero value is ready to use.
type requestLog struct {
	mu       sync.Mutex
	requests []request
}

// wrap returns a transport whose requests are recorded.
func (l *requestLog) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		entry := request{method: r.Method, path: r.URL.Path, watch: r.URL.Query().Get("watch") != "", dryRun: r.URL.Query().Get("dryRun") != ""}
		if r.Body != nil && r.Method != http.MethodGet {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			r = r.Clone(r.Context())
			r.Body = io.NopCloser(bytes.NewReader(body))
			entry.body = string(body)
		}
		response, err := next.RoundTrip(r)
		if err == nil {
			entry.status = response.StatusCode
			if entry.forbidden, err = forbidden(response); err != nil {
				return nil, err
			}
		}
		l.mu.Lock()
		l.requests = append(l.requests, entry)
		l.mu.Unlock()
		return response, err
	})
}

// mark returns a place in the log, for since.
func (l *requestLog) mark() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.requests)
}

// since returns the requests after a mark that match.
func (l *requestLog) since(mark int, match func(request) bool) []request {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.requests[mark:]), func(r request) bool { return !match(r) })
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
