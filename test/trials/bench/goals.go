// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// goal is an upper limit of a figure that we want to reach. A goal that is missed is no failure.
type goal struct {
	name   string
	limit  float64
	format func(float64) string
	// figure returns the figure, and whether it was measured.
	figure func(*report) (float64, bool)
}

// at is a size with one offering.
func at(n int) size { return size{n: n, offerings: 1} }

// ofOperator is a goal for a figure of the operator at a size with one offering.
func ofOperator(f figure, n int, limit float64) goal {
	return goal{fmt.Sprintf("%s, at %d Pods", f.name, n), limit, f.format,
		func(r *report) (float64, bool) { return r.median(at(n), operator.name, f.of) }}
}

// ofAnySize is a goal for a figure of the operator at all sizes.
func ofAnySize(f figure, limit float64) goal {
	return goal{f.name + ", any size", limit, f.format, func(r *report) (highest float64, measured bool) {
		for i, of := range r.operatorSizes() {
			if value, _ := r.median(of, operator.name, f.of); i == 0 || value > highest {
				highest, measured = value, true
			}
		}
		return highest, measured
	}}
}

var goals = []goal{
	ofOperator(linkP99, 200, 1),
	ofOperator(linkP99, 1000, 2),
	ofOperator(providerIDP99, 200, 1),
	ofOperator(providerIDP99, 1000, 2),
	{"200 Pods until all run, ratio", 0.9, count, func(r *report) (float64, bool) { return r.ratio(at(200), secondsUp) }},
	{"200 Pods deleted until nothing is left, ratio", 1.1, count, func(r *report) (float64, bool) { return r.ratio(at(200), secondsDown) }},
	{"CPU of the operator per claim at 1000 Pods, in relation to 200", 1.3, count, func(r *report) (float64, bool) {
		cpu := func(m *result) float64 { return m.cpu(stack.Operator) }
		many, measuredMany := r.median(at(1000), operator.name, cpu)
		few, measuredFew := r.median(at(200), operator.name, cpu)
		if !measuredMany || !measuredFew {
			return 0, false
		}
		return many / few, true
	}},
	ofAnySize(machineWrites, 2),
	ofAnySize(ownClaimWrites, 2),
	ofAnySize(liveReads, 1),
	ofAnySize(conflicts, 0.01),
}

// goals lists which goals are reached.
func (r *report) goals() string {
	t := &table{header: []string{"goal", "at most", "measured", ""}}
	for _, g := range goals {
		value, measured := g.figure(r)
		verdict := "ok"
		switch {
		case !measured:
			verdict = "not measured"
		case value > g.limit:
			verdict = "missed"
		}
		t.add(g.name, g.format(g.limit), cell(g.format)(value, measured), verdict)
	}
	return fmt.Sprint(t)
}
