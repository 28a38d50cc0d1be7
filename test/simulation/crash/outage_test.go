// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/connection"
)

// longestBackoff is how long a watch takes to come back after an outage (client-go: tools/cache/reflector.go,
// 30 seconds and as much jitter).
const longestBackoff = 60 * time.Second

// outage is an outage of the API server of one cluster.
type outage struct {
	until  time.Time
	broken int // how often one began
}

// disturb sets the clock or begins an outage, if the mode does that and something happens just now.
func (w *simulation) disturb() {
	if w.skew != 0 && w.clock.Since(w.lastChange) > 30*round {
		w.tracef("the clock of the operator's machine is right again")
		w.skew, w.lastChange = 0, w.clock.Now()
	}
	if w.mode.random == nil || w.clock.Since(w.lastChange) > 30*round {
		return
	}
	if w.mode.jumps && w.jumped < 3 && w.mode.random.Intn(15) == 0 {
		w.jump()
	}
	for _, cluster := range clusterNames {
		if w.mode.breaks(cluster) && !w.isOut(cluster) && w.outages[cluster].broken < 3 && w.mode.random.Intn(15) == 0 {
			w.breakOff(cluster)
		}
	}
}

// breakOff begins an outage of a cluster. After it, watches come back one by one: those of our process, and those of
// the infrastructure provider.
func (w *simulation) breakOff(cluster string) {
	o := w.outages[cluster]
	o.broken++
	o.until = w.clock.Now().Add(time.Duration(1+w.mode.random.Intn(60)) * round)
	w.tracef("OUTAGE of the %s cluster until %s", cluster, o.until.Sub(start))
	w.lastChange = w.clock.Now()
	if cluster == connection.Management {
		for _, kind := range w.provider.kinds {
			w.provider.frozen[kind] = w.backAfter(o)
		}
	}
	for _, p := range []*process{w.process, w.old} {
		if p != nil {
			p.loseWatches(cluster, o)
		}
	}
}

// backAfter returns when a watch comes back after an outage.
func (w *simulation) backAfter(o *outage) time.Time {
	return o.until.Add(time.Duration(w.mode.random.Intn(int(longestBackoff/round))) * round)
}

// isOut reports whether the API server of a cluster does not answer.
func (w *simulation) isOut(cluster string) bool {
	return w.clock.Now().Before(w.outages[cluster].until)
}

var clusterNames = []string{connection.Management, connection.Workload}

// clusterOfKind returns the cluster that has the objects of a kind, or of a list of them.
func clusterOfKind(kind string) string {
	if slices.Contains(workloadKinds, strings.TrimSuffix(kind, "List")) {
		return connection.Workload
	}
	return connection.Management
}

// errUnreachable is the error of a request during an outage.
var errUnreachable = errors.New("connection refused")

// newConnections returns the connections of a new process, which are open.
func (w *simulation) newConnections() map[string]*connection.Connection {
	connections := map[string]*connection.Connection{}
	for _, cluster := range clusterNames {
		connections[cluster] = connection.New(cluster, "https://"+cluster, w.clock, machineClock{simulation: w})
		connections[cluster].Filled()
	}
	return connections
}

// loseWatches ends the watches of a cluster, each until some time after the outage.
func (p *process) loseWatches(cluster string, o *outage) {
	for _, kind := range kinds {
		if clusterOfKind(kind) == cluster {
			p.lost[kind] = p.simulation.backAfter(o)
			p.cache.frozen[kind] = p.lost[kind]
			p.tell(kind, watching, errUnreachable)
		}
	}
}

// regainWatches opens the watches again that are due, and asks a cluster that did not answer before, as
// internal/operator does.
func (p *process) regainWatches() {
	for _, kind := range sortedNames(p.lost) {
		if !p.simulation.clock.Now().Before(p.lost[kind]) {
			delete(p.lost, kind)
			p.tell(kind, watching, nil)
		}
	}
	for _, cluster := range clusterNames {
		if p.unanswered[cluster] != "" && !p.simulation.isOut(cluster) {
			p.tell(p.unanswered[cluster], "", nil)
			delete(p.unanswered, cluster)
		}
	}
}

// reach returns an error if the process has ended, or if the cluster with the objects of a kind does not answer a request.
func (p *process) reach(kind string) error {
	if p.dead {
		return errDead
	}
	cluster := clusterOfKind(kind)
	if !p.simulation.isOut(cluster) {
		return nil
	}
	p.unanswered[cluster] = kind
	p.tell(kind, "", errUnreachable)
	return errUnreachable
}

const watching = "?watch=true"

// tell answers a request of the process for a kind.
func (p *process) tell(kind, query string, err error) {
	cluster := clusterOfKind(kind)
	url := "https://" + cluster + "/apis/cluster.x-k8s.io/v1beta2/" + strings.ToLower(strings.TrimSuffix(kind, "List")) + "s" + query
	request, _ := http.NewRequestWithContext(p.ctx, http.MethodGet, url, http.NoBody)
	_, _ = p.connections[cluster].Transport(answer{err}).RoundTrip(request) //nolint:bodyclose // It is open until the process ends.
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

// The search of machine pools (test/harness/model) takes it that all caches have recovered when pools settle: a watch is open
// after the longest backoff, and its cache is filled as fast as a provider sees any write.
func TestRecoveryHasMargin(t *testing.T) {
	if timings := clients.ProductionTimings(); timings.Recovery < longestBackoff+timings.Settle {
		t.Errorf("pools settle after %s, which must be at least %s", timings.Recovery, longestBackoff+timings.Settle)
	}
}

// Without the time that pools need to settle, the search finds that an outage loses a Machine with a Node, and so does a
// clock that is set while the process ends: then the age of a write is not known.
func TestPoolsMustSettle(t *testing.T) {
	of := scalings[slices.IndexFunc(scalings, func(of *scaling) bool { return of.name == "MachinePool" })]
	// The losses are rare. The search begins where it found one last, and goes on if that is no longer one.
	for name, first := range map[string]int{"outages": 14, "jumps_and_crashes": 2130} {
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
