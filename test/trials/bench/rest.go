// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/karpenter-capi/karpenter-capi/test/harness/audit"
)

// rest is what happens while nothing is to do.
type rest struct {
	Seconds float64 `json:"seconds"`
	// CPU is the CPU time of each process.
	CPU usage `json:"cpu"`
	// Writes are those of the process in which Karpenter runs.
	Writes int `json:"writes"`
	// Heap is the live heap of that process after a garbage collection, in MiB.
	Heap float64 `json:"heap"`
}

// cores returns how many cores a component used.
func (r *rest) cores(component string) float64 { return r.CPU[component] / r.Seconds }

// writesPerMinute returns the writes of the process in which Karpenter runs.
func (r *rest) writesPerMinute() float64 { return float64(r.Writes) / r.Seconds * 60 }

// restFor is how long a rest is observed, which is longer than the periods of all controllers that look again by themselves
// within a minute. With fewer Nodes than restFrom it is not.
const (
	restFor  = time.Minute
	restFrom = 200
)

// rest observes a rest.
func (t *trial) rest(ctx context.Context) (*rest, error) {
	heap, err := liveHeap(ctx, metricsAddress(t.Stack, t.component))
	if err != nil {
		return nil, err
	}
	if _, err := t.requests(); err != nil {
		return nil, err
	}
	before, err := usageOf(ctx, t.Stack)
	if err != nil {
		return nil, err
	}
	stopProfiling := t.profiler.start(ctx, "rest")
	began := time.Now()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(restFor):
	}
	if err := stopProfiling(); err != nil {
		return nil, err
	}
	after, err := usageOf(ctx, t.Stack)
	if err != nil {
		return nil, err
	}
	measured := &rest{Seconds: time.Since(began).Seconds(), CPU: after.since(before), Heap: heap}
	entries, err := t.requests()
	measured.Writes = len(audit.WritesBy(t.agent, entries))
	return measured, err
}

// liveHeap returns the heap of a process after a garbage collection, in MiB. Its profile ends with the runtime's figures,
// one of which is "# HeapAlloc = 12345" (runtime/pprof: pprof.go, writeHeapInternal).
func liveHeap(ctx context.Context, address string) (float64, error) {
	url := address + "/debug/pprof/heap?gc=1&debug=1"
	profile, err := fetch(ctx, url)
	if err != nil {
		return 0, err
	}
	defer profile.Close() //nolint:errcheck // It is only read.
	lines := bufio.NewScanner(profile)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if value, found := strings.CutPrefix(lines.Text(), "# HeapAlloc = "); found {
			bytes, err := strconv.ParseFloat(value, 64)
			return bytes / (1 << 20), err
		}
	}
	return 0, errors.Join(lines.Err(), fmt.Errorf("%s has no HeapAlloc", url))
}
