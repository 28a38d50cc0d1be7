// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"

	"github.com/samber/lo"
)

func milliseconds(s float64) string { return fmt.Sprintf("%.0f ms", 1000*s) }
func cores(value float64) string    { return fmt.Sprintf("%.3f cores", value) }

// beside compares the process of this operator with that of Karpenter with kwok, which is Karpenter without machines.
func (r *report) beside() string {
	t := &table{header: []string{""}}
	sizes := lo.Filter(r.sizes, func(of size, _ int) bool { return len(r.results[of][operator.name])+len(r.results[of][kwok.name]) > 0 })
	for _, of := range sizes {
		t.header = append(t.header, of.String())
	}
	add := func(name string, format func(float64) string, value func(of size) (float64, bool)) {
		t.add(append([]string{name}, lo.Map(sizes, func(of size, _ int) string { return cell(format)(value(of)) })...)...)
	}
	median := func(variant string, figure func(*result) float64) func(size) (float64, bool) {
		return func(of size) (float64, bool) { return r.median(of, variant, figure) }
	}
	more := func(figure func(*result) float64) func(size) (float64, bool) {
		return func(of size) (float64, bool) { return r.more(of, figure) }
	}
	add("requests per claim, kwok", count, median(kwok.name, (*result).requests))
	add("requests per claim, this operator", count, median(operator.name, (*result).requests))
	add("more than kwok", count, more((*result).requests))
	add("CPU of the process per claim, kwok", milliseconds, median(kwok.name, (*result).process))
	add("CPU of the process per claim, this operator", milliseconds, median(operator.name, (*result).process))
	add("more than kwok", milliseconds, more((*result).process))
	add("CPU of the whole stack per claim, kwok", milliseconds, median(kwok.name, (*result).stack))
	add("CPU of the whole stack per claim, Cluster API alone", milliseconds, median(clusterAPI.name, (*result).stack))
	add("CPU of the whole stack per claim, this operator", milliseconds, median(operator.name, (*result).stack))
	for _, v := range variants {
		add("the same work before the run, "+v.name, milliseconds, median(v.name, func(m *result) float64 { return m.Work }))
	}
	for _, v := range []variant{kwok, operator} {
		add("at rest: CPU, "+v.name, cores, r.atRest(v, func(is *rest) float64 { return is.cores(v.component) }))
		add("at rest: writes per minute, "+v.name, count, r.atRest(v, (*rest).writesPerMinute))
		add("at rest: live heap, "+v.name, mebibytes, r.atRest(v, func(is *rest) float64 { return is.Heap }))
	}
	add("restart until caught up", seconds, r.atRestart(func(is *restart) float64 { return is.Seconds }))
	add("writes until then", count, r.atRestart(func(is *restart) float64 { return float64(is.Writes) }))
	for _, name := range answers {
		add("kubectl karpenter-capi "+name, seconds, r.answerOf(name))
	}
	return t.String()
}

// atRestart returns a figure of the restart of this operator.
func (r *report) atRestart(figure func(*restart) float64) func(size) (float64, bool) {
	return func(of size) (float64, bool) {
		runs := lo.Filter(r.results[of][operator.name], func(m result, _ int) bool { return m.Restart != nil })
		return medianOf(runs, func(m result) float64 { return figure(m.Restart) }), len(runs) > 0
	}
}

// answerOf returns for how long a user waits for a command of the kubectl plugin.
func (r *report) answerOf(name string) func(size) (float64, bool) {
	return func(of size) (float64, bool) {
		runs := lo.Filter(r.results[of][operator.name], func(m result, _ int) bool { return m.Answers != nil })
		return medianOf(runs, func(m result) float64 { return m.Answers[name] }), len(runs) > 0
	}
}

// more returns by how much a figure of the operator is larger than kwok's.
func (r *report) more(of size, figure func(*result) float64) (float64, bool) {
	ours, measured := r.median(of, operator.name, figure)
	kwoks, measuredKwok := r.median(of, kwok.name, figure)
	return ours - kwoks, measured && measuredKwok
}

// atRest returns a figure of the rest of a variant.
func (r *report) atRest(v variant, figure func(*rest) float64) func(size) (float64, bool) {
	return func(of size) (float64, bool) {
		runs := lo.Filter(r.results[of][v.name], func(m result, _ int) bool { return m.Rest != nil })
		return medianOf(runs, func(m result) float64 { return figure(m.Rest) }), len(runs) > 0
	}
}

// growth returns by how much the CPU per claim grows from 200 to 1,000 Pods, for a variant.
func (r *report) growth(v variant) (float64, bool) {
	many, measuredMany := r.median(at(1000), v.name, func(m *result) float64 { return m.cpu(v.component) })
	few, measuredFew := r.median(at(200), v.name, func(m *result) float64 { return m.cpu(v.component) })
	if !measuredMany || !measuredFew || few == 0 {
		return 0, false
	}
	return many / few, true
}
