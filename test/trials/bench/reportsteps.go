// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"strings"

	"github.com/samber/lo"
)

// steps has how long each step from a Pod to where it runs takes.
func (r *report) steps() string {
	var tables []string
	for _, of := range r.sizes {
		tables = append(tables, r.stepTable(of, of.String(), func(m result) []step { return m.Steps }))
	}
	if len(r.sizes) > 0 {
		of := r.sizes[0]
		tables = append(tables, r.stepTable(of, "the first Pod", func(m result) []step { return m.First }))
	}
	return strings.Join(tables, "\n")
}

func (r *report) stepTable(of size, title string, steps func(result) []step) string {
	t := &table{header: []string{title}}
	measured := lo.Filter(variants, func(v variant, _ int) bool { return len(r.results[of][v.name]) > 0 && v.component != "" })
	for _, v := range measured {
		t.header = append(t.header, v.name+" p50", "p90", "p99")
	}
	for _, s := range stepsOf {
		cells := []string{s.name}
		for _, v := range measured {
			runs := lo.FilterMap(r.results[of][v.name], func(m result, _ int) (distribution, bool) { return stepIn(steps(m), s.name) })
			for _, percentile := range []func(distribution) float64{
				func(d distribution) float64 { return d.P50 }, func(d distribution) float64 { return d.P90 }, func(d distribution) float64 { return d.P99 },
			} {
				cells = append(cells, cell(short)(medianOf(runs, percentile), len(runs) > 0))
			}
		}
		t.add(cells...)
	}
	return t.String()
}
