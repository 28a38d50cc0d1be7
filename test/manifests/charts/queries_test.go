// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// queryUses is what a query uses (see hack/tools/prometheus/queries).
type queryUses struct {
	Metrics map[string][]string
	Groups  []string
}

// TestQueriesUseMetricsThatExist compares each query of the alerts and dashboards with docs/reference/metrics.md.
func TestQueriesUseMetricsThatExist(t *testing.T) {
	queries := map[string]string{} // by where they are
	for _, alert := range alertsOf(t) {
		queries["alert "+alert.Alert] = alert.Expr
	}
	maps.Copy(queries, dashboardQueries(t))
	known, places := documentedMetrics(t), slices.Sorted(maps.Keys(queries))
	for i, uses := range parseQueries(t, places, queries) {
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
				t.Errorf("%s: no metric of %s has the label %s", places[i], queries[places[i]], label)
			}
		}
	}
}

// dashboardQueries returns the queries of all panels. Grafana replaces $ and a name.
func dashboardQueries(t *testing.T) map[string]string {
	t.Helper()
	rendered := render(t, Operator, Values{"grafanaDashboards": Values{"enabled": true}})
	queries, dashboards := map[string]string{}, 0
	for _, config := range decode[corev1.ConfigMap](t, rendered, "ConfigMap") {
		if config.Labels["grafana_dashboard"] != "1" {
			continue
		}
		for file, text := range config.Data {
			dashboards++
			dashboard := struct {
				Panels []struct {
					Title   string
					Targets []struct{ Expr string }
				}
			}{}
			if err := json.Unmarshal([]byte(text), &dashboard); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			for _, panel := range dashboard.Panels {
				for _, target := range panel.Targets {
					queries[file+": "+panel.Title+": "+target.Expr] = target.Expr
				}
			}
		}
	}
	if dashboards != 2 {
		t.Errorf("got %d dashboards, want 2", dashboards)
	}
	return queries
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

// parseQueries parses queries with Prometheus's own parser.
func parseQueries(t *testing.T, places []string, queries map[string]string) []queryUses {
	t.Helper()
	binary := filepath.Join(Root(), "bin", "promql-queries")
	if _, err := os.Stat(binary); err != nil {
		t.Fatalf("bin/promql-queries is not built (%v): run 'make bin/promql-queries', or these tests with 'make test-charts'", err)
	}
	texts := make([]string, len(places))
	for i, place := range places {
		texts[i] = queries[place]
	}
	input, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), binary)
	stderr := &bytes.Buffer{}
	command.Stdin, command.Stderr = bytes.NewReader(input), stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("a query cannot be parsed: %v: %s", err, stderr)
	}
	var uses []queryUses
	if err := json.Unmarshal(output, &uses); err != nil {
		t.Fatal(err)
	}
	return uses
}
