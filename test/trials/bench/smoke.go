// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"time"

	"github.com/samber/lo"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// smokePaced and smokeBurst are the loads of the smoke test.
var (
	smokePaced = size{n: 15, offerings: 1, every: 2 * time.Second}
	smokeBurst = size{n: 30, offerings: 1, catalog: true}
)

var smokeOptions = options{
	dir:      filepath.Join(".stack", "bench-smoke"),
	results:  filepath.Join(".stack", "bench-smoke", "results.json"),
	measured: []planned{{kwok, []size{smokePaced}, 1}, {operator, []size{smokePaced, smokeBurst}, 1}},
}

// bound is what a run of the operator must not exceed. The figures are counts and ratios, so they hardly depend on the
// machine; the few durations are medians with a wide margin.
type bound struct {
	figure
	most float64
}

// perComponent is how many requests of a component there are per claim.
func perComponent(agent string) figure {
	return figure{"requests of " + agent + " per claim", func(m *result) float64 {
		return m.each(sum(m.Requests, func(kind requestKind) bool { return kind.Component == agent }))
	}, count}
}

// median is the median of a step. A step that was not observed exceeds each bound.
func median(name string) figure {
	return figure{name + ", p50", func(m *result) float64 {
		if d, observed := m.step(name); observed {
			return d.P50
		}
		return math.Inf(1)
	}, short}
}

var bounds = []bound{
	{perComponent(operatorAgent), 45},
	{perComponent(clusterAPIAgent), 80},
	{perComponent(stack.Infrastructure), 15},
	{refused, 0.5},
	{ownWrites, 5.5},
	{liveReads, 1.5},
	{machineWrites, 3},
	{conflicts, 0.05},
	{ownClaimWrites, 1.5},
	{templateWrites, 0.6},
	{templateBurst, 3},
}

// pacedBounds are those for claims that come one after the other.
var pacedBounds = []bound{
	{median(claimToReplicas), 0.75},
	{median(machineToLink), 0.5},
	{median(machineIDToClaimID), 0.5},
}

// The bounds in relation to Karpenter with kwok in the same run.
const (
	mostRequestsMore = 5.0
	mostCPU          = 2.0
)

// concludeSmoke returns an error that names each bound that a result exceeds.
func concludeSmoke(_ options, results []result) error {
	fmt.Println()
	fmt.Print(newReport(results).text())
	fmt.Println()
	return check(results)
}

// check compares results with the bounds.
func check(results []result) error {
	var errs []error
	exceeded := func(m *result, name string, format func(float64) string, value, most float64) {
		if value > most {
			errs = append(errs, fmt.Errorf("%s, %s: %s, but at most %s is allowed", name, m.size(), format(value), format(most)))
		}
	}
	for i := range results {
		m := &results[i]
		if m.Variant != operator.name {
			continue
		}
		for _, b := range bounds {
			exceeded(m, b.name, b.format, b.of(m), b.most)
		}
		if m.Every > 0 {
			for _, b := range pacedBounds {
				exceeded(m, b.name, b.format, b.of(m), b.most)
			}
		}
		if alone, found := lo.Find(results, func(r result) bool { return r.Variant == kwok.name && r.size() == m.size() }); found {
			exceeded(m, "requests of the process per claim less kwok's", count, m.requests()-alone.requests(), mostRequestsMore)
			exceeded(m, "CPU of the process divided by kwok's", count, m.process()/alone.process(), mostCPU)
		}
	}
	return errors.Join(errs...)
}
