// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Timers of launches do not run during an outage, and do during an interruption that is brief.
func TestUp(t *testing.T) {
	w := newWorld(t)
	expect := func(when string, want time.Duration) {
		t.Helper()
		if got := w.connection.Up(); got != want {
			t.Errorf("%s: up for %s, want %s", when, got, want)
		}
	}
	expect("without an outage", forever)
	w.do(t.Context(), machines, 0, nil)
	w.pass(brief)
	expect("during an interruption that is still brief", forever)
	w.pass(time.Second)
	expect("during an outage", 0)
	w.do(t.Context(), machines, 200, nil)
	expect("at its end", 0)
	w.pass(time.Minute)
	expect("a minute later", time.Minute)
	w.do(t.Context(), machines, 0, nil)
	w.pass(time.Second)
	expect("during a brief interruption after it", time.Minute+time.Second)
	w.do(t.Context(), machines, 200, nil)
	expect("after that interruption", time.Minute+time.Second)
	w.do(t.Context(), machines, 0, nil)
	w.pass(brief)
	w.do(t.Context(), machines, 200, nil)
	expect("after one that was just brief", time.Minute+time.Second+brief)
}

// The metrics and the channel follow the begin and the end of an interruption, and nothing between.
func TestChanges(t *testing.T) {
	w := newWorld(t)
	changed := func() bool {
		select {
		case <-w.connection.Changed():
			return true
		default:
			return false
		}
	}
	changed() // the start
	disturbances := func() float64 { return metric(t, "karpenter_capi_cluster_disturbances_total") }
	before := disturbances()
	for _, step := range []struct {
		name        string
		status      int
		wantChanged bool
		want        float64
		disturbed   float64 // how often
	}{
		{name: "a request is answered", status: 200, want: 1},
		{name: "the first request fails", status: 0, wantChanged: true, want: 0, disturbed: 1},
		{name: "the second request fails", status: 503, want: 0, disturbed: 1},
		{name: "a request is refused", status: 429, want: 0, disturbed: 1},
		{name: "a request is answered again", status: 200, wantChanged: true, want: 1, disturbed: 1},
		{name: "the next one, too", status: 404, want: 1, disturbed: 1},
	} {
		w.do(t.Context(), machines, step.status, nil)
		w.pass(time.Minute)
		if got := changed(); got != step.wantChanged {
			t.Errorf("%s: got a change: %t, want %t", step.name, got, step.wantChanged)
		}
		if got := metric(t, "karpenter_capi_cluster_reachable"); got != step.want {
			t.Errorf("%s: the metric is %v, want %v", step.name, got, step.want)
		}
		if got := disturbances() - before; got != step.disturbed {
			t.Errorf("%s: disturbed %v times, want %v", step.name, got, step.disturbed)
		}
	}
}

// A clock that is slewed is not set, and one that is set twice counts twice.
func TestJumps(t *testing.T) {
	w := newWorld(t)
	w.wall.Step(jump)
	if got := w.connection.SettlesIn(2*time.Hour, forever); got != time.Hour {
		t.Errorf("settles in %s after a slew, want 1h", got)
	}
	for range 2 {
		w.wall.Step(-time.Hour)
		if got := w.connection.Up(); got != 0 {
			t.Errorf("up for %s after a jump, want 0", got)
		}
		w.pass(time.Minute)
		if got := w.connection.SettlesIn(2*time.Hour, forever); got != 2*time.Hour-time.Minute {
			t.Errorf("settles in %s, want 2h from the jump on", got)
		}
	}
	if err := w.connection.Err(); err != nil {
		t.Errorf("a jump interrupts the connection: %v", err)
	}
}

// A connection that was never disturbed needs no value.
func TestNil(t *testing.T) {
	var c *Connection
	waited, _ := c.Unsettled()
	if c.Err() != nil || c.SettlesIn(time.Hour, time.Hour) > 0 || c.Up() != forever || waited != 0 {
		t.Errorf("got error %v, settles in %s, waited for %s and up for %s", c.Err(), c.SettlesIn(time.Hour, time.Hour), waited, c.Up())
	}
}

// Times of the machine have no monotonic reading, with which a jump could not be seen.
func TestWall(t *testing.T) {
	if now := (Wall{}).Now(); now != now.Round(0) { // == also compares the monotonic readings
		t.Errorf("got %s with a monotonic reading", now)
	}
}

// metric returns the value of a metric for the management cluster.
func metric(t *testing.T, name string) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name && m.GetLabel()[0].GetValue() == Management {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	t.Fatal("no metric")
	return 0
}
