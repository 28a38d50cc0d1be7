// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"strings"
	"testing"
	"time"
)

// Disturbances that follow each other are waited for until the cluster could be reached for the limit. What
// began during an outage is waited for after it.
func TestSettlesIn(t *testing.T) {
	const limit = 15 * time.Minute
	disturb := func(w *world) {
		w.do(w.t.Context(), machines, 503, nil)
		w.do(w.t.Context(), machines, 200, nil)
	}
	for name, tc := range map[string]struct {
		do   func(*world)
		want time.Duration // zero for settled
		// waited is what Unsettled returns.
		waited time.Duration
	}{
		"no disturbance": {do: func(*world) {}},
		"one": {do: func(w *world) {
			disturb(w)
			w.pass(time.Minute)
		}, want: 30 * time.Second, waited: time.Minute},
		"one, 90 s before": {do: func(w *world) {
			disturb(w)
			w.pass(Recovery)
		}},
		"one each minute": {do: func(w *world) {
			for range 10 {
				disturb(w)
				w.pass(time.Minute)
			}
		}, want: 30 * time.Second, waited: 10 * time.Minute},
		"one each minute, nearly until the limit": {do: func(w *world) {
			for range 14 {
				disturb(w)
				w.pass(time.Minute)
			}
			disturb(w)
			w.pass(50 * time.Second)
		}, want: 10 * time.Second, waited: 14*time.Minute + 50*time.Second},
		"one each minute, until the limit": {do: func(w *world) {
			for range 15 {
				disturb(w)
				w.pass(time.Minute)
			}
		}, waited: limit},
		"an outage after those": {do: func(w *world) {
			for range 15 {
				disturb(w)
				w.pass(time.Minute)
			}
			w.do(w.t.Context(), machines, 503, nil)
		}, want: Recovery, waited: limit},
		"one after those": {do: func(w *world) {
			for range 15 {
				disturb(w)
				w.pass(time.Minute)
			}
			w.pass(Recovery)
			disturb(w)
			w.pass(time.Minute)
		}, want: 30 * time.Second, waited: time.Minute},
		"one each two minutes": {do: func(w *world) {
			for range 10 {
				disturb(w)
				w.pass(2 * time.Minute)
			}
			disturb(w)
			w.pass(time.Second)
		}, want: Recovery - time.Second, waited: time.Second},
		"during an outage": {do: func(w *world) {
			w.do(w.t.Context(), machines, 503, nil)
			w.pass(time.Hour)
		}, want: Recovery},
		"after an outage": {do: func(w *world) {
			w.do(w.t.Context(), machines, 503, nil)
			w.pass(time.Hour)
			w.do(w.t.Context(), machines, 200, nil)
			w.pass(time.Second)
		}, want: Recovery - time.Second, waited: time.Second},
		"while the watch of Machines is broken": {do: func(w *world) {
			drain(w.do(w.t.Context(), machines+watch, 200, broken{}))
			w.pass(time.Hour)
		}, want: Recovery},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			_ = w.connection.Err() // it notices that the start was an hour ago
			tc.do(w)
			if got := max(0, w.connection.SettlesIn(Recovery, limit)); got != tc.want {
				t.Errorf("settles in %s, want %s", got, tc.want)
			}
			if got, _ := w.connection.Unsettled(); got != tc.waited {
				t.Errorf("waited for %s, want %s", got, tc.waited)
			}
		})
	}
}

// The limit counts from when this process leads: until then it decides nothing.
func TestTheLimitCountsFromTheLease(t *testing.T) {
	w := newWorld(t)
	elected := make(chan struct{})
	w.connection.LeadsFrom(elected)
	for range 15 { // while another process leads
		w.do(t.Context(), machines, 503, nil)
		w.do(t.Context(), machines, 200, nil)
		w.pass(time.Minute)
	}
	close(elected)
	if got := w.connection.SettlesIn(Recovery, 15*time.Minute); got != Recovery {
		t.Errorf("settles in %s when this process begins to lead, want %s", got, Recovery)
	}
	if waited, cause := w.connection.Unsettled(); waited != 0 || cause != "this process has gained the lease" {
		t.Errorf("waited for %s because of %q", waited, cause)
	}
}

// The cause of a disturbance can be shown after it has ended.
func TestCauseOfDisturbance(t *testing.T) {
	w := newWorld(t)
	w.do(t.Context(), machines, 503, nil)
	w.do(t.Context(), machines, 200, nil)
	w.pass(time.Second)
	if _, cause := w.connection.Unsettled(); !strings.HasPrefix(cause, "GET /apis/cluster.x-k8s.io/v1beta2/machines: ") {
		t.Errorf("got %q, want the request that failed", cause)
	}
	drain(w.do(t.Context(), machines+watch, 200, broken{}))
	if _, cause := w.connection.Unsettled(); cause != "watch of /apis/cluster.x-k8s.io/v1beta2/machines: it has ended: connection reset by peer" {
		t.Errorf("got %q, want the watch that is broken", cause)
	}
}
