// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/karpenter-capi/karpenter-capi/test/stack/stack"
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

// ofOperator returns a figure of the operator.
func ofOperator(of size, figure func(*result) float64) func(*report) (float64, bool) {
	return func(r *report) (float64, bool) { return r.median(of, operator.name, figure) }
}

// most returns the highest figure of the operator, of all sizes.
func most(figure func(*result) float64) func(*report) (float64, bool) {
	return func(r *report) (highest float64, measured bool) {
		for i, of := range r.operatorSizes() {
			if value, _ := r.median(of, operator.name, figure); i == 0 || value > highest {
				highest, measured = value, true
			}
		}
		return highest, measured
	}
}

func linkP99(m *result) float64       { return m.Link.P99 }
func providerIDP99(m *result) float64 { return m.ProviderID.P99 }

var goals = []goal{
	{"Machine created → link, p99 at 200 Pods", 1, short, ofOperator(at(200), linkP99)},
	{"Machine created → link, p99 at 1000 Pods", 2, short, ofOperator(at(1000), linkP99)},
	{"Node created → provider ID, p99 at 200 Pods", 1, short, ofOperator(at(200), providerIDP99)},
	{"Node created → provider ID, p99 at 1000 Pods", 2, short, ofOperator(at(1000), providerIDP99)},
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
	{"writes of the Machine per claim, any size", 2, count, most((*result).machineWrites)},
	{"writes of the claim by the operator's own code, any size", 2, count, most((*result).ownClaimWrites)},
	{"live reads of claims, Machines, instances and Nodes per claim, any size", 1, count, most((*result).liveReads)},
	{"conflicts of the writes of Machines, any size", 0.01, percent, most((*result).conflicts)},
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
