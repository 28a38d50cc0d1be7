// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// report has the results of all runs by size and variant.
type report struct {
	sizes   []size
	results map[size]map[string][]result
}

func newReport(results []result) *report {
	r := &report{results: map[size]map[string][]result{}}
	for _, measured := range results {
		of := measured.size()
		if r.results[of] == nil {
			r.results[of] = map[string][]result{}
			r.sizes = append(r.sizes, of)
		}
		r.results[of][measured.Variant] = append(r.results[of][measured.Variant], measured)
	}
	slices.SortFunc(r.sizes, func(a, b size) int {
		return slices.Compare([]int{int(a.every), a.standing, a.n, a.offerings, a.waves}, []int{int(b.every), b.standing, b.n, b.offerings, b.waves})
	})
	return r
}

// median returns the median of a figure of a variant, and whether it was measured.
func (r *report) median(of size, variant string, figure func(*result) float64) (float64, bool) {
	runs := r.results[of][variant]
	return medianOf(runs, func(m result) float64 { return figure(&m) }), len(runs) > 0
}

// ratio returns how long the operator takes in relation to Karpenter with kwok and Cluster API alone, one after the
// other.
func (r *report) ratio(of size, figure func(*result) float64) (float64, bool) {
	ours, measured := r.median(of, operator.name, figure)
	karpenter, measuredKarpenter := r.median(of, kwok.name, figure)
	machines, measuredMachines := r.median(of, clusterAPI.name, figure)
	if !measured || !measuredKarpenter || !measuredMachines || karpenter+machines == 0 {
		return 0, false
	}
	return ours / (karpenter + machines), true
}

func secondsUp(m *result) float64   { return m.Up.Seconds }
func secondsDown(m *result) float64 { return m.Down.Seconds }

// cell formats a figure, if it was measured.
func cell(format func(float64) string) func(float64, bool) string {
	return func(value float64, measured bool) string {
		if !measured {
			return none
		}
		return format(value)
	}
}

// durations compares the variants.
func (r *report) durations() string {
	t := &table{header: []string{"", "kwok", "Cluster API alone", "this operator", "ratio"}}
	for _, of := range r.sizes {
		for _, row := range []struct {
			name   string
			figure func(*result) float64
		}{
			{"%s until all run", secondsUp},
			{"%s deleted until nothing is left", secondsDown},
		} {
			cells := []string{fmt.Sprintf(row.name, of)}
			for _, v := range variants {
				cells = append(cells, cell(seconds)(r.median(of, v.name, row.figure)))
			}
			t.add(append(cells, cell(count)(r.ratio(of, row.figure)))...)
		}
	}
	return t.String()
}

// figure is a row of the table of the operator's figures.
type figure struct {
	name   string
	of     func(*result) float64
	format func(float64) string
}

// Figures for which there is a goal or a bound.
var (
	linkP99        = figure{"Machine created → link, p99", func(m *result) float64 { return m.Link.P99 }, short}
	providerIDP99  = figure{"Node created → provider ID, p99", func(m *result) float64 { return m.ProviderID.P99 }, short}
	allRequests    = figure{"requests per claim", (*result).requests, count}
	liveReads      = figure{"live reads of claims, Machines, instances and Nodes per claim", (*result).liveReads, count}
	machineWrites  = figure{"writes of the Machine per claim", (*result).machineWrites, count}
	conflicts      = figure{"conflicts of the writes of Machines", (*result).conflicts, percent}
	ownWrites      = figure{"writes by the operator's own code per claim, of any kind but events", (*result).ownWrites, count}
	refused        = figure{"refused requests per claim", (*result).refused, count}
	ownClaimWrites = figure{"writes of the claim by the operator's own code", (*result).ownClaimWrites, count}
	templateWrites = figure{"writes of the status of the template per claim", (*result).templateWrites, count}
	templateBurst  = figure{"most writes of the status of the template in 10 s", func(m *result) float64 { return float64(m.MostTemplateWrites) }, count}
)

// figures are what is measured only for this operator.
var figures = []figure{
	{"Machine created → link, p50", func(m *result) float64 { return m.Link.P50 }, short},
	{"Machine created → link, p90", func(m *result) float64 { return m.Link.P90 }, short},
	linkP99,
	{"Machine created → link, max", func(m *result) float64 { return m.Link.Max }, short},
	{"the same by the API server's times, p50", func(m *result) float64 { return m.LinkRequest.P50 }, short},
	{"the same by the API server's times, p99", func(m *result) float64 { return m.LinkRequest.P99 }, short},
	{"Node created → provider ID, p50", func(m *result) float64 { return m.ProviderID.P50 }, short},
	{"Node created → provider ID, p90", func(m *result) float64 { return m.ProviderID.P90 }, short},
	providerIDP99,
	{"Node created → provider ID, max", func(m *result) float64 { return m.ProviderID.Max }, short},
	{"linked Machine has its provider ID → claim has it, p50", func(m *result) float64 { return m.SinceMachine.P50 }, short},
	{"linked Machine has its provider ID → claim has it, p99", func(m *result) float64 { return m.SinceMachine.P99 }, short},
	allRequests,
	refused,
	liveReads,
	{"other live reads per claim", (*result).otherReads, count},
	machineWrites,
	conflicts,
	ownClaimWrites,
	ownWrites,
	{"writes of the claim, with those of Karpenter core", (*result).claimWrites, count},
	templateWrites,
	templateBurst,
	{"conflicts of Cluster API's writes per Machine", (*result).clusterAPIConflicts, count},
	{"reconciles of the operator's own controllers per claim", func(m *result) float64 { return m.Reconciles / float64(m.N) }, count},
	{"CPU of the operator per claim", func(m *result) float64 { return m.cpu(stack.Operator) }, func(s float64) string { return fmt.Sprintf("%.0f ms", 1000*s) }},
	{"memory of the operator after the scale-up", func(m *result) float64 { return m.Memory.RSS }, mebibytes},
	{"most memory of the operator until then", func(m *result) float64 { return m.Memory.Most }, mebibytes},
}

// operatorSizes are the sizes with which the operator was measured.
func (r *report) operatorSizes() []size {
	return lo.Filter(r.sizes, func(of size, _ int) bool { return len(r.results[of][operator.name]) > 0 })
}

// costs has the figures of the operator.
func (r *report) costs() string {
	sizes := r.operatorSizes()
	t := &table{header: []string{"number of Pods"}}
	for _, of := range sizes {
		t.header = append(t.header, of.String())
	}
	for _, f := range figures {
		cells := []string{f.name}
		for _, of := range sizes {
			cells = append(cells, cell(f.format)(r.median(of, operator.name, f.of)))
		}
		t.add(cells...)
	}
	cells := []string{"conflicts of Cluster API's writes per Machine, alone"}
	for _, of := range sizes {
		cells = append(cells, cell(count)(r.median(of, clusterAPI.name, (*result).clusterAPIConflicts)))
	}
	t.add(cells...)
	return t.String()
}

// processes has the CPU time of each process.
func (r *report) processes() string {
	var tables []string
	for _, of := range r.sizes {
		used := map[string]bool{}
		t := &table{header: []string{of.String()}}
		for _, v := range variants {
			t.header = append(t.header, v.name+" up", "down")
			for _, measured := range r.results[of][v.name] {
				for name := range measured.Up.CPU {
					used[name] = true
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(used)) {
			cells := []string{name}
			for _, v := range variants {
				runs := r.results[of][v.name]
				if len(runs) == 0 || !lo.HasKey(runs[0].Up.CPU, name) {
					cells = append(cells, none, none)
					continue
				}
				cells = append(cells,
					seconds(medianOf(runs, func(m result) float64 { return m.Up.CPU[name] })),
					seconds(medianOf(runs, func(m result) float64 { return m.Down.CPU[name] })))
			}
			t.add(cells...)
		}
		tables = append(tables, t.String())
	}
	return strings.Join(tables, "\n")
}

// text returns all tables.
func (r *report) text() string {
	parts := []string{"How long it takes:\n", r.durations(), "From a Pod to where it runs:\n", r.steps(), "In relation to Karpenter with kwok:\n", r.beside()}
	if len(r.operatorSizes()) > 0 {
		parts = append(parts, "What the operator does:\n", r.costs(), "Requests of the operator per claim:\n", r.requests())
	}
	parts = append(parts, "Requests of all components per claim:\n", r.components())
	parts = append(parts, "CPU time of each process:\n", r.processes(), "Goals:\n", r.goals())
	return strings.Join(parts, "\n")
}
