// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Interval is how often a file is read, at most. A kubelet needs longer to update it.
const Interval = time.Second

// Report gets each change of a file: nil if its new content is used, and an error if it cannot be used, so
// that the content before it stays in use.
type Report func(error)

// Load returns a client configuration that follows a file. It fails if the file cannot be used now.
func Load(path string, report Report) (*rest.Config, error) {
	now, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	return &rest.Config{
		Host: now.server.String(),
		Transport: &follower{
			path: path, server: now.server, report: report, interval: Interval, clock: time.Now, current: now, checked: time.Now(),
		},
	}, nil
}

// follower sends requests as the file says now.
type follower struct {
	path string
	// server is what requests are addressed to: the URL in the file when it was loaded.
	server   *url.URL
	report   Report
	interval time.Duration
	clock    func() time.Time

	mu      sync.Mutex
	current *content
	checked time.Time
	// problem is what was reported last; empty if the file can be used.
	problem string
}

// RoundTrip implements http.RoundTripper.
func (f *follower) RoundTrip(request *http.Request) (*http.Response, error) {
	now := f.content()
	if *now.server != *f.server {
		request = readdressed(request, f.server, now.server)
	}
	return now.transport.RoundTrip(request)
}

// content returns the latest usable content of the file.
func (f *follower) content() *content {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock()
	if now.Sub(f.checked) < f.interval {
		return f.current
	}
	f.checked = now
	text, err := os.ReadFile(f.path)
	if err == nil && string(text) == f.current.text {
		if f.problem != "" {
			f.problem = ""
			f.report(nil)
		}
		return f.current
	}
	var changed *content
	if err == nil {
		changed, err = parse(f.path, text)
	}
	if err != nil {
		if f.problem != err.Error() {
			f.problem = err.Error()
			f.report(fmt.Errorf("kubeconfig %s: the content before it stays in use: %w", f.path, err))
		}
		return f.current
	}
	f.current, f.problem = changed, ""
	f.report(nil)
	return f.current
}

// readdressed returns a copy of a request to one server that goes to another.
func readdressed(request *http.Request, from, to *url.URL) *http.Request {
	request = request.Clone(request.Context())
	request.URL.Scheme, request.URL.Host = to.Scheme, to.Host
	path := strings.TrimPrefix(request.URL.Path, strings.TrimSuffix(from.Path, "/"))
	request.URL.Path = strings.TrimSuffix(to.Path, "/") + path
	request.URL.RawPath = ""
	request.Host = to.Host
	return request
}
