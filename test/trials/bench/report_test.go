// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

func TestTable(t *testing.T) {
	table := &table{header: []string{"request", "200 up"}}
	table.add("patch machines: 200", "1.00")
	table.add("Machine → link", none)
	want := strings.Join([]string{
		"| request             | 200 up |",
		"| ------------------- | -----: |",
		"| patch machines: 200 |   1.00 |",
		"| Machine → link      |      – |",
		"",
	}, "\n")
	if diff := cmp.Diff(want, table.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

// runsOf returns runs that took the given times.
func runsOf(variant string, n int, seconds ...float64) []result {
	var runs []result
	for i, up := range seconds {
		runs = append(runs, result{
			Variant: variant, N: n, Offerings: 1, Run: i + 1,
			Up:   phase{Seconds: up, CPU: usage{stack.Operator: up}},
			Down: phase{Seconds: 2 * up, CPU: usage{stack.Operator: 0}},
		})
	}
	return runs
}

func TestReport(t *testing.T) {
	var results []result
	results = append(results, runsOf(kwok.name, 200, 4, 6, 5)...)
	results = append(results, runsOf(clusterAPI.name, 200, 15)...)
	results = append(results, runsOf(operator.name, 200, 30, 10, 16)...)
	results = append(results, runsOf(operator.name, 1000, 160)...)
	report := newReport(results)
	want := strings.Join([]string{
		"|                                         |   kwok | Cluster API alone | this operator | ratio |",
		"| --------------------------------------- | -----: | ----------------: | ------------: | ----: |",
		"| 200 Pods until all run                  |  5.0 s |            15.0 s |        16.0 s |  0.80 |",
		"| 200 Pods deleted until nothing is left  | 10.0 s |            30.0 s |        32.0 s |  0.80 |",
		"| 1000 Pods until all run                 |      – |                 – |       160.0 s |     – |",
		"| 1000 Pods deleted until nothing is left |      – |                 – |       320.0 s |     – |",
		"",
	}, "\n")
	if diff := cmp.Diff(want, report.durations()); diff != "" {
		t.Errorf("durations (-want +got):\n%s", diff)
	}
	goals := report.goals()
	for _, want := range []string{
		"| 200 Pods until all run, ratio | 1.20 | 0.80 | ok |",
		"| CPU of the process per claim less kwok's, 200 Pods | 40 ms | 80 ms | missed |",
	} {
		if !strings.Contains(strings.Join(strings.Fields(goals), " "), want) {
			t.Errorf("the goals lack the line\n%s\nin\n%s", want, goals)
		}
	}
	if goals := newReport(nil).goals(); !strings.Contains(goals, "not measured") || strings.Contains(goals, " ok ") {
		t.Errorf("without results, goals are reached:\n%s", goals)
	}
}

func TestMerge(t *testing.T) {
	earlier := append(runsOf(operator.name, 60, 1, 2), runsOf(operator.name, 200, 3)...)
	got := merge(earlier, runsOf(operator.name, 60, 9))
	if diff := cmp.Diff(append(runsOf(operator.name, 200, 3), runsOf(operator.name, 60, 9)...), got); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}
