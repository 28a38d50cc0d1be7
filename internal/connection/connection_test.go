// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/karpenter-capi/karpenter-capi/internal/metrics"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// api is an API server: it answers with a status, or not at all.
type api struct {
	status int
	err    error
	body   io.Reader
}

func (a *api) RoundTrip(*http.Request) (*http.Response, error) {
	if a.err != nil {
		return nil, a.err
	}
	return &http.Response{StatusCode: a.status, Status: http.StatusText(a.status), Body: io.NopCloser(a.body)}, nil
}

// world is a connection of a process that started an hour ago.
type world struct {
	t           *testing.T
	clock, wall *clocktesting.FakeClock
	api         *api
	connection  *Connection
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, clock: clocktesting.NewFakeClock(noon), wall: clocktesting.NewFakeClock(noon), api: &api{status: http.StatusOK}}
	w.connection = New(Management, "https://management", w.clock, w.wall)
	w.connection.Filled()
	w.pass(time.Hour)
	return w
}

func (w *world) pass(d time.Duration) {
	w.clock.Step(d)
	w.wall.Step(d)
}

// do sends a request that the API server answers with a status; 0 for no answer. It returns the body.
func (w *world) do(ctx context.Context, path string, status int, body io.Reader) io.ReadCloser {
	w.t.Helper()
	w.api.status, w.api.err, w.api.body = status, nil, body
	if body == nil {
		w.api.body = strings.NewReader("")
	}
	if status == 0 {
		w.api.err = errors.New("connection refused")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://management"+path, http.NoBody)
	if err != nil {
		w.t.Fatal(err)
	}
	response, err := w.connection.Transport(w.api).RoundTrip(request)
	if err != nil {
		return nil
	}
	return response.Body
}

const (
	machines  = "/apis/cluster.x-k8s.io/v1beta2/machines"
	instances = "/apis/infrastructure.cluster.x-k8s.io/v1beta1/awsmachines"
	clusters  = "/apis/cluster.x-k8s.io/v1beta2/clusters"
	watch     = "?watch=true"
)

// broken is a watch that fails.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("connection reset by peer") }

func drain(body io.Reader) { _, _ = io.Copy(io.Discard, body) }

func TestConnection(t *testing.T) {
	for name, tc := range map[string]struct {
		do                     func(*world)
		interrupted, disturbed bool
		// up is the time since the last outage; zero for none.
		up time.Duration
	}{
		"nothing happens":                 {do: func(*world) {}},
		"requests are answered":           {do: func(w *world) { w.do(w.t.Context(), machines, 200, nil) }},
		"what is not found is answered":   {do: func(w *world) { w.do(w.t.Context(), machines+"/m", 404, nil) }},
		"a forbidden request is answered": {do: func(w *world) { w.do(w.t.Context(), machines, 403, nil) }},
		"a request is refused":            {do: func(w *world) { w.do(w.t.Context(), machines, 429, nil) }},
		"a request has no answer":         {do: func(w *world) { w.do(w.t.Context(), machines, 0, nil) }, interrupted: true, disturbed: true},
		"the server has an error":         {do: func(w *world) { w.do(w.t.Context(), machines, 503, nil) }, interrupted: true, disturbed: true},
		"the token is refused":            {do: func(w *world) { w.do(w.t.Context(), machines, 401, nil) }, interrupted: true, disturbed: true},
		"the next request is answered":    {do: func(w *world) { w.do(w.t.Context(), machines, 0, nil); w.do(w.t.Context(), machines, 200, nil) }, disturbed: true},
		"nobody waits for the answer": {do: func(w *world) {
			ctx, cancel := context.WithCancel(w.t.Context())
			cancel()
			w.do(ctx, machines, 0, nil)
		}},
		"a watch breaks, and other requests are answered": {do: func(w *world) {
			drain(w.do(w.t.Context(), machines+watch, 200, broken{}))
			w.do(w.t.Context(), machines, 200, nil)
		}, interrupted: true, disturbed: true},
		"it is opened again": {do: func(w *world) {
			drain(w.do(w.t.Context(), machines+watch, 200, broken{}))
			w.do(w.t.Context(), machines+watch, 200, nil)
		}, disturbed: true},
		"another watch is opened": {do: func(w *world) {
			drain(w.do(w.t.Context(), machines+watch, 200, broken{}))
			w.do(w.t.Context(), machines+watch+"&labelSelector=a", 200, nil)
		}, interrupted: true, disturbed: true},
		"a watch ends": {do: func(w *world) { drain(w.do(w.t.Context(), machines+watch, 200, nil)) }},
		"a watch ends and is not opened again": {do: func(w *world) {
			drain(w.do(w.t.Context(), machines+watch, 200, nil))
			w.pass(reopen + time.Second)
		}, interrupted: true, disturbed: true},
		"a watch ends and is opened again in time": {do: func(w *world) {
			drain(w.do(w.t.Context(), machines+watch, 200, nil))
			w.pass(reopen)
		}},
		"a client stops a watch": {do: func(w *world) {
			ctx, cancel := context.WithCancel(w.t.Context())
			body := w.do(ctx, machines+watch, 200, broken{})
			cancel()
			drain(body)
			w.pass(time.Minute)
		}},
		"a watch is forbidden that was never open": {do: func(w *world) { w.do(w.t.Context(), machines+watch, 403, nil) }},
		"the right to an open watch is removed": {do: func(w *world) {
			drain(w.do(w.t.Context(), machines+watch, 200, nil))
			w.do(w.t.Context(), machines+watch, 403, nil)
		}, interrupted: true, disturbed: true},
		"the watch of a provider's kind breaks": {do: func(w *world) {
			drain(w.do(w.t.Context(), instances+watch, 200, broken{}))
		}},
		"the watch of another kind breaks": {do: func(w *world) {
			drain(w.do(w.t.Context(), clusters+watch, 200, broken{}))
		}, interrupted: true},
		"the watch of another kind is opened again": {do: func(w *world) {
			drain(w.do(w.t.Context(), clusters+watch, 200, broken{}))
			w.do(w.t.Context(), clusters+watch, 200, nil)
		}},
		"the watch of another kind is refused": {do: func(w *world) { w.do(w.t.Context(), clusters+watch, 429, nil) }},
		"the watch of another kind stays refused": {do: func(w *world) {
			w.do(w.t.Context(), clusters+watch, 429, nil)
			w.pass(reopen + time.Second)
		}, interrupted: true},
		"the server has an error with another kind": {do: func(w *world) { w.do(w.t.Context(), clusters, 500, nil) }},
		"the webhook of a provider does not answer": {do: func(w *world) {
			w.do(w.t.Context(), instances, 500, strings.NewReader(status(500, "InternalError", `failed calling webhook "w"`)))
		}},
		"the wall clock jumps":       {do: func(w *world) { w.wall.Step(time.Hour) }, disturbed: true, up: time.Nanosecond},
		"the wall clock jumps a bit": {do: func(w *world) { w.wall.Step(jump + time.Second) }, disturbed: true, up: time.Nanosecond},
		"the wall clock jumps back":  {do: func(w *world) { w.wall.Step(-time.Minute) }, disturbed: true, up: time.Nanosecond},
		"an outage has ended": {do: func(w *world) {
			w.do(w.t.Context(), machines, 0, nil)
			w.pass(time.Minute)
			w.do(w.t.Context(), machines, 200, nil)
			w.pass(time.Second)
		}, disturbed: true, up: time.Second},
		"an interruption was brief": {do: func(w *world) {
			w.do(w.t.Context(), machines, 0, nil)
			w.pass(time.Second)
			w.do(w.t.Context(), machines, 200, nil)
		}, disturbed: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.do(w)
			w.expect(t, tc.interrupted, tc.disturbed)
			if up := w.connection.Up(); tc.up == 0 && up != forever || tc.up > 0 && up > tc.up {
				t.Errorf("got up for %s, want %s", up, tc.up)
			}
		})
	}
}

// expect checks whether the connection is interrupted, and whether it was disturbed within a minute.
func (w *world) expect(t *testing.T, interrupted, disturbed bool) {
	t.Helper()
	if err := w.connection.Err(); (err != nil) != interrupted {
		t.Errorf("got error %v, want one: %t", err, interrupted)
	}
	if got := w.connection.SettlesIn(time.Minute, time.Hour) > 0; got != disturbed {
		t.Errorf("got disturbed %t, want %t", got, disturbed)
	}
}

// During a start nothing is decided, timers continue that ran before it, and the standby of a leader counts
// as disturbed until it leads.
func TestStart(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	metrics.ClusterReachable.Reset()
	wall := clocktesting.NewFakeClock(noon.Add(time.Hour)) // it need not agree with the other clock
	c := New(Management, "https://management", clock, wall)
	if got := metric(t, "karpenter_capi_cluster_reachable"); got != 0 {
		t.Errorf("the metric is %v, want 0 until the cache is filled", got)
	}
	elected := make(chan struct{})
	c.LeadsFrom(elected)
	if err := c.Err(); err == nil || !strings.Contains(err.Error(), "the cache is not filled yet") {
		t.Errorf("got %v, want an error until the cache is filled", err)
	}
	pass := func(d time.Duration) {
		clock.Step(d)
		wall.Step(d)
	}
	pass(time.Minute)
	if c.Up() != forever {
		t.Error("a start is an outage, want that timers continue")
	}
	c.Filled()
	if c.Up() != forever {
		t.Error("the end of a start is that of an outage, want that timers continue")
	}
	if err := c.Err(); err != nil {
		t.Error(err)
	}
	pass(time.Hour)
	if got := c.SettlesIn(2*time.Minute, time.Hour); got != 2*time.Minute {
		t.Errorf("settles in %s before this process leads, want 2m", got)
	}
	close(elected)
	if got := c.SettlesIn(2*time.Minute, time.Hour); got != 2*time.Minute {
		t.Errorf("settles in %s when this process begins to lead, want 2m", got)
	}
	pass(time.Minute)
	if got := c.SettlesIn(2*time.Minute, time.Hour); got != time.Minute {
		t.Errorf("settles in %s, want 1m", got)
	}
}

// Until the caches are filled, however long that takes, they may lack what other clients have written.
func TestStartHidesWrites(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	c := New(Management, "https://management", clock, clock)
	clock.Step(time.Hour)
	if got := c.SettlesIn(2*time.Minute, time.Hour); got != 2*time.Minute {
		t.Errorf("settles in %s, want 2m", got)
	}
	if _, cause := c.Unsettled(); cause != "the operator has started" {
		t.Errorf("got %q as the cause", cause)
	}
}

// The message for conditions does not change while an interruption lasts.
func TestMessage(t *testing.T) {
	w := newWorld(t)
	w.do(t.Context(), machines, 0, nil)
	first := Message(errors.Join(nil, w.connection.Err()))
	w.pass(time.Minute)
	if second := Message(w.connection.Err()); first != second || !strings.Contains(first, "management cluster https://management") {
		t.Errorf("got %q and then %q", first, second)
	}
}
