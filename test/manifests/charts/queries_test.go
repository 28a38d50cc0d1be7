// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestQueriesUseMetricsThatExist compares each query of the alerts and dashboards with docs/reference/metrics.md.
func TestQueriesUseMetricsThatExist(t *testing.T) {
	chart := monitoringOf(t, MonitoringValues())
	var places, queries []string
	for _, alert := range chart.Alerts {
		places, queries = append(places, "alert "+alert.Alert), append(queries, alert.Expr)
	}
	dashboards := map[string]bool{}
	for _, panel := range chart.Panels {
		places, queries, dashboards[panel.Dashboard] = append(places, panel.Place()), append(queries, panel.Expr), true
	}
	if len(dashboards) != 2 {
		t.Errorf("got %d dashboards, want 2", len(dashboards))
	}
	parsed, err := ParseQueries(t.Context(), queries)
	if err != nil {
		t.Fatal(err)
	}
	known := documentedMetrics(t)
	for i, uses := range parsed {
		allowed := []string{"namespace", "job", "pod", "le"}
		for name, labels := range uses.Metrics {
			has, found := known[name]
			if !found {
				t.Errorf("%s: metric %s is not in docs/reference/metrics.md", places[i], name)
			}
			has = append(has, "namespace", "job", "pod")
			allowed = append(allowed, has...)
			for _, label := range labels {
				if !slices.Contains(has, label) {
					t.Errorf("%s: metric %s has no label %s", places[i], name, label)
				}
			}
		}
		for _, label := range uses.Groups {
			if !slices.Contains(allowed, label) {
				t.Errorf("%s: no metric of %s has the label %s", places[i], queries[i], label)
			}
		}
	}
}

// documentedMetrics returns the labels of each metric in docs/reference/metrics.md. Histograms have three series.
func documentedMetrics(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(Root(), "docs/reference/metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile("`([a-z_]+)`")
	metrics := map[string][]string{"up": nil} // of Prometheus itself
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, " | ")
		first := name.FindStringSubmatch(cells[0])
		if !strings.HasPrefix(line, "| `") || first == nil || len(cells) < 3 {
			continue
		}
		in, ours := cells[1], len(cells) == 5
		if ours {
			in = cells[2]
		}
		var labels []string
		for part := range strings.SplitSeq(in, "<br>") {
			found := name.FindAllStringSubmatch(part, -1)
			for i := range found {
				if !ours || i == 0 { // the others are values
					labels = append(labels, found[i][1])
				}
			}
		}
		for _, suffix := range []string{"", "_bucket", "_sum", "_count"} {
			if suffix == "" || !ours || cells[1] == "histogram" {
				metrics[first[1]+suffix] = slices.Clone(labels)
			}
		}
	}
	return metrics
}
