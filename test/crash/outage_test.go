// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/karpenter-capi/karpenter-capi/internal/connection"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
)

// longestBackoff is how long a watch takes to come back after an outage (client-go: tools/cache/reflector.go,
// 30 seconds and as much jitter).
const longestBackoff = 60 * time.Second

// disturb sets the clock or begins an outage, if the mode does that and something happens just now.
func (w *simulation) disturb() {
	if w.skew != 0 && w.clock.Since(w.lastChange) > 30*round {
		w.tracef("the clock of the operator's machine is right again")
		w.skew, w.lastChange = 0, w.clock.Now()
	}
	if w.mode.random == nil || w.clock.Since(w.lastChange) > 30*round || w.clock.Now().Before(w.outageUntil) {
		return
	}
	if w.mode.jumps && w.jumped < 3 && w.mode.random.Intn(15) == 0 {
		w.jump()
	}
	if w.mode.outages && w.broken < 3 && w.mode.random.Intn(15) == 0 {
		w.broken++
		w.outageUntil = w.clock.Now().Add(time.Duration(1+w.mode.random.Intn(60)) * round)
		for _, kind := range w.provider.kinds {
			w.provider.frozen[kind] = w.outageUntil.Add(time.Duration(w.mode.random.Intn(int(longestBackoff/round))) * round)
		}
		w.tracef("OUTAGE of the management cluster until %s", w.outageUntil.Sub(start))
		w.tellProcesses(errors.New("connection refused"))
	}
}

// isOut reports whether the API server does not answer. At the end of an outage, the operator's watches are
// open again.
func (w *simulation) isOut() bool {
	if w.outageUntil.IsZero() {
		return false
	}
	if w.clock.Now().Before(w.outageUntil) {
		return true
	}
	w.outageUntil = time.Time{}
	w.tellProcesses(nil)
	return false
}

func (w *simulation) tellProcesses(err error) {
	for _, p := range []*process{w.process, w.old} {
		if p != nil {
			p.tell(err)
		}
	}
}

// newConnection returns the connection of a new process, which is open.
func (w *simulation) newConnection() *connection.Connection {
	c := connection.New(connection.Management, "https://management", w.clock, machineClock{simulation: w})
	c.Filled()
	return c
}

// tell answers a watch of the process.
func (p *process) tell(err error) {
	request, _ := http.NewRequestWithContext(p.ctx, http.MethodGet, "https://management/apis/cluster.x-k8s.io/v1beta2/machines?watch=true", http.NoBody)
	response, _ := p.connection.Transport(answer{err}).RoundTrip(request)
	if response != nil {
		p.watch = response.Body
	}
}

// answer is how an API server answers a watch.
type answer struct{ err error }

// RoundTrip returns an open watch, or the error.
func (a answer) RoundTrip(*http.Request) (*http.Response, error) {
	if a.err != nil {
		return nil, a.err
	}
	return &http.Response{StatusCode: http.StatusOK, Status: "200 OK", Body: neverEnds{}}, nil
}

// neverEnds is the body of an open watch.
type neverEnds struct{ *strings.Reader }

// Close does nothing.
func (neverEnds) Close() error { return nil }

// The search of machine pools (test/model) takes it that all caches have recovered when pools settle: a watch is open
// after the longest backoff, and its cache is filled as fast as a provider sees any write.
func TestRecoveryHasMargin(t *testing.T) {
	if timings := operator.ProductionTimings(); timings.Recovery < longestBackoff+timings.Settle {
		t.Errorf("pools settle after %s, which must be at least %s", timings.Recovery, longestBackoff+timings.Settle)
	}
}

// Without the time that pools need to settle, the search finds that an outage loses a Machine with a Node, and so does a
// clock that is set while the process ends: then the age of a write is not known.
func TestPoolsMustSettle(t *testing.T) {
	of := scalings[slices.IndexFunc(scalings, func(of *scaling) bool { return of.name == "MachinePool" })]
	// The losses are rare. The search begins where it found one last, and goes on if that is no longer one.
	for name, first := range map[string]int{"outages": 0, "jumps_and_crashes": 870} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mode := modes[slices.IndexFunc(modes, func(m mode) bool { return m.name == name })]
			for _, s := range scenarios {
				if !slices.Contains(s.of, of) || s.name != "deleted_by_hand" {
					continue
				}
				all := s.prepare(t, of)
				all.begin.hasty = true
				for seed := first; seed < first+50*seeds; seed++ {
					r := run{name: mode.name, mode: mode, seed: int64(seed)}
					if w := all.do(r, nil); w.failure != "" {
						t.Logf("%s, seed %d: %s", s.name, seed, w.failure)
						return
					}
				}
			}
			t.Error("pools that do not settle lose no Machine: the search has nothing that matters")
		})
	}
}
