// SPDX-License-Identifier: Apache-2.0

package lanes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/karpenter-capi/karpenter-capi/internal/metrics"
)

const (
	machine = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines/m"
	claim   = "/apis/karpenter.sh/v1/nodeclaims/c"
	event   = "/api/v1/namespaces/default/events"
	lease   = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l"
)

// most is how many requests of one lane can be in flight, except for events.
var most = own[usual] + shared

// api is an API server. It has the paths of the requests that have reached it.
type api struct {
	mu      sync.Mutex
	arrived []string
	answer  func(*http.Request) (*http.Response, error)
}

func (a *api) RoundTrip(request *http.Request) (*http.Response, error) {
	a.mu.Lock()
	a.arrived = append(a.arrived, request.URL.Path)
	a.mu.Unlock()
	if a.answer != nil {
		return a.answer(request)
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("{}"))}, nil
}

// next returns what has arrived since the last call.
func (a *api) next() []string {
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	arrived := a.arrived
	a.arrived = nil
	return arrived
}

// world is a process with a limit and an API server. Answers stay open until they are closed.
type world struct {
	t     *testing.T
	api   *api
	limit *Limit
	rt    http.RoundTripper
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, api: &api{}, limit: New()}
	w.rt = w.limit.Transport(w.api)
	return w
}

// send sends a request, whose answer stays open.
func (w *world) send(ctx context.Context, method, path string) (*http.Response, error) {
	return w.rt.RoundTrip(httptest.NewRequestWithContext(ctx, method, path, http.NoBody))
}

// fill takes slots, and returns the answers that have them.
func (w *world) fill(path string, count int) []io.Closer {
	w.t.Helper()
	bodies := make([]io.Closer, count)
	for i := range bodies {
		response, err := w.send(w.t.Context(), http.MethodPatch, path)
		if err != nil {
			w.t.Fatal(err)
		}
		bodies[i] = response.Body
	}
	if arrived := w.api.next(); len(arrived) != count {
		w.t.Fatalf("%d of %d requests were sent", len(arrived), count)
	}
	return bodies
}

// queue sends a request that waits.
func (w *world) queue(ctx context.Context, method, path string) {
	w.t.Helper()
	go func() { _, _ = w.send(ctx, method, path) }()
	if arrived := w.api.next(); len(arrived) > 0 {
		w.t.Fatalf("%s does not wait", arrived)
	}
}

func (w *world) expect(what string, want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.api.next()); diff != "" {
		w.t.Errorf("sent, %s (-want +got):\n%s", what, diff)
	}
}

func TestLaneOf(t *testing.T) {
	for name, tc := range map[string]struct {
		method, path, contentType string
		want                      lane
		free                      bool
	}{
		"link a Machine":           {method: "PATCH", path: machine, want: urgent},
		"another prefix":           {method: "PATCH", path: "/k8s/clusters/c-1" + machine, want: urgent},
		"create a resource":        {method: "POST", path: "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machinedeployments", want: urgent},
		"create what it refers to": {method: "POST", path: "/apis/infrastructure.cluster.x-k8s.io/v1beta1/namespaces/default/simulatedmachinetemplates", want: urgent},
		"set a provider ID":        {method: "PATCH", path: claim + "/status", contentType: "application/json-patch+json", want: urgent},
		"core's status":            {method: "PATCH", path: claim + "/status", contentType: "application/merge-patch+json", want: usual},
		"read a claim":             {method: "GET", path: claim, want: urgent},
		"fill a cache":             {method: "GET", path: "/api/v1/pods?limit=500", want: urgent},
		"create a claim":           {method: "POST", path: "/apis/karpenter.sh/v1/nodeclaims", want: usual},
		"evict a Pod":              {method: "POST", path: "/api/v1/namespaces/default/pods/p/eviction", want: usual},
		"an event":                 {method: "POST", path: event, want: events},
		"an event that is counted": {method: "PATCH", path: event + "/e", want: events},
		"an event of the new API":  {method: "POST", path: "/apis/events.k8s.io/v1/namespaces/default/events", want: events},
		"another kind of events":   {method: "POST", path: "/apis/example.org/v1/namespaces/default/events", want: usual},
		"a namespace named events": {method: "DELETE", path: "/api/v1/namespaces/events", want: usual},
		"a watch":                  {method: "GET", path: "/api/v1/pods?watch=true", want: urgent, free: true},
		"a watch that is a list":   {method: "GET", path: "/api/v1/pods?sendInitialEvents=true&watch=1", want: urgent, free: true},
		"a Lease":                  {method: "PUT", path: lease, want: usual, free: true},
	} {
		t.Run(name, func(t *testing.T) {
			request := httptest.NewRequestWithContext(t.Context(), tc.method, tc.path, http.NoBody)
			request.Header.Set("Content-Type", tc.contentType)
			if lane, free := laneOf(request), isFree(request); lane != tc.want || free != tc.free {
				t.Errorf("%s, free %t; want %s, free %t", lane, free, tc.want, tc.free)
			}
		})
	}
}

// If all slots are taken, urgent requests get the shared ones before usual requests, and of one lane the oldest first.
func TestUrgentRequestsGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		bodies := w.fill(claim, most)
		w.fill(machine, own[urgent])
		for _, path := range []string{claim + "/1", claim + "/2", machine + "/1", machine + "/2"} {
			w.queue(t.Context(), http.MethodPatch, path)
		}
		for i, want := range []string{machine + "/1", machine + "/2", claim + "/1", claim + "/2"} {
			_ = bodies[i].Close()
			w.expect(fmt.Sprint("slot ", i), want)
		}
	})
}

// However many requests of one lane are in flight and wait, the others have their own slots.
func TestLanesHaveTheirOwnSlots(t *testing.T) {
	for name, tc := range map[string]struct {
		full   string // the path of the lane that has all that it can have
		most   int
		others map[string]int
	}{
		"urgent": {full: machine, most: most, others: map[string]int{claim: own[usual], event: own[events]}},
		"usual":  {full: claim, most: most, others: map[string]int{machine: own[urgent], event: own[events]}},
		"events": {full: event, most: own[events], others: map[string]int{claim: most, machine: own[urgent]}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.fill(tc.full, tc.most)
				for range 100 {
					w.queue(t.Context(), http.MethodPatch, tc.full)
				}
				for _, path := range []string{claim, machine, event} {
					if path == tc.full {
						continue
					}
					bodies := w.fill(path, tc.others[path])
					w.queue(t.Context(), http.MethodPatch, path)
					_ = bodies[0].Close()
					w.expect("after the end of one of its lane", path)
				}
			})
		})
	}
}

// Watches and Leases do not wait, and take no slot from others.
func TestWatchesAndLeasesDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fill(claim, most-1)
		for range 2 * most {
			for _, path := range []string{lease, "/api/v1/pods?watch=true"} {
				if _, err := w.send(t.Context(), http.MethodGet, path); err != nil {
					t.Fatal(err)
				}
			}
		}
		w.api.next()
		w.fill(claim, 1)
		w.queue(t.Context(), http.MethodPatch, claim)
		if _, err := w.send(t.Context(), http.MethodPut, lease); err != nil {
			t.Fatal(err)
		}
		w.expect("while all slots are taken", lease)
	})
}

// A request has its slot until its answer was read or closed, or there is none.
func TestSlotEndsWithTheAnswer(t *testing.T) {
	for name, end := range map[string]func(io.ReadCloser){
		"read":            func(body io.ReadCloser) { _, _ = io.ReadAll(body) },
		"closed":          func(body io.ReadCloser) { _ = body.Close() },
		"read and closed": func(body io.ReadCloser) { _, _ = io.ReadAll(body); _ = body.Close(); _ = body.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				bodies := w.fill(claim, most)
				w.queue(t.Context(), http.MethodPatch, claim+"/1")
				w.queue(t.Context(), http.MethodPatch, claim+"/2")
				first := bodies[0].(io.ReadCloser)
				_, _ = first.Read(make([]byte, 1))
				w.expect("in the middle of an answer")
				end(first)
				w.expect("after the answer", claim+"/1")
				_ = bodies[1].Close()
				w.expect("after another one", claim+"/2")
			})
		})
	}
	t.Run("none", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.api.answer = func(*http.Request) (*http.Response, error) { return nil, errors.New("refused") }
			for range 2 * most {
				if _, err := w.send(t.Context(), http.MethodPatch, claim); err == nil || err.Error() != "refused" {
					t.Fatal(err)
				}
			}
		})
	})
}

// A request whose context ends while it waits is not sent, and takes no slot from those behind it.
func TestWaitEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		bodies := w.fill(claim, most)
		ctx, cancel := context.WithCancel(t.Context())
		sent := &closed{}
		ended := make(chan error, 1)
		go func() {
			_, err := w.rt.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodPatch, claim+"/late", sent))
			ended <- err
		}()
		synctest.Wait()
		w.queue(t.Context(), http.MethodPatch, claim)
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) || !sent.closed {
			t.Errorf("%v; the body was closed: %t", err, sent.closed)
		}
		w.expect("after the end of the context")
		_ = bodies[0].Close()
		w.expect("after the next answer", claim)
	})
}

// closed is a body that knows whether it was closed.
type closed struct {
	strings.Reader
	closed bool
}

func (c *closed) Close() error {
	c.closed = true
	return nil
}

// However requests of all lanes come, take, fail or are given up: the limits are never exceeded, and at the end all slots are
// free.
func TestLimitIsNeverExceeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var mu sync.Mutex
		var inFlight, highest [lanes]int
		together := 0 // the most urgent and usual requests at once
		count := func(lane lane, by int) {
			mu.Lock()
			defer mu.Unlock()
			inFlight[lane] += by
			highest[lane] = max(highest[lane], inFlight[lane])
			together = max(together, inFlight[urgent]+inFlight[usual])
		}
		random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // the test is repeatable
		w.api.answer = func(request *http.Request) (*http.Response, error) {
			lane := laneOf(request)
			count(lane, 1)
			defer count(lane, -1)
			time.Sleep(10 * time.Millisecond)
			if request.ContentLength == 1 {
				return nil, errors.New("connection reset")
			}
			return &http.Response{Body: io.NopCloser(strings.NewReader("{}"))}, nil
		}
		var all sync.WaitGroup
		for range 2000 {
			path, after, fails := []string{machine, claim, event}[random.IntN(3)], time.Duration(random.IntN(100)), int64(random.IntN(2))
			patience := time.Duration(1+random.IntN(50)) * 10 * time.Millisecond
			all.Go(func() {
				time.Sleep(after * time.Millisecond)
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				request := httptest.NewRequestWithContext(ctx, http.MethodPatch, path, http.NoBody)
				request.ContentLength = fails
				if response, err := w.rt.RoundTrip(request); err == nil {
					_, _ = io.ReadAll(response.Body)
					_ = response.Body.Close()
				}
			})
		}
		all.Wait()
		if want := own[urgent] + own[usual] + shared; together != want || highest[urgent] > most || highest[usual] > most || highest[events] != own[events] {
			t.Errorf("most requests in flight: %v, and %d without events, want %d", highest, together, want)
		}
		if w.limit.taken != [lanes]int{} {
			t.Errorf("slots that are still taken: %v", w.limit.taken)
		}
	})
}

// A slot that a request gets when its context has ended already is for the next one.
func TestLateSlotIsHandedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a slot that is lost ends the test
		l := New()
		l.taken[events] = own[events]
		late, next := make(chan struct{}), make(chan struct{})
		place := l.waiting[events].PushBack(late)
		l.waiting[events].PushBack(next)
		l.release(events)
		<-late
		l.leave(events, place)
		<-next
		if l.taken[events] != own[events] {
			t.Errorf("%d slots are taken", l.taken[events])
		}
	})
}

// Dashboards show a lane also if none of its requests has ever waited.
func TestEachLaneHasASeries(t *testing.T) {
	metrics.WaitingRequests.Reset()
	New()
	if got := testutil.CollectAndCount(metrics.WaitingRequests); got != int(lanes) {
		t.Errorf("got %d series, want one of each of the %d lanes", got, lanes)
	}
}
