// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Alert is an alert of the chart.
type Alert struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

// Panel is a query of a panel.
type Panel struct {
	// Dashboard is the file of the dashboard, and Title that of the panel. A panel can have several queries.
	Dashboard, Title string
	// Expr is the query. Grafana replaces $ and the name of a variable.
	Expr string
	// Unit is that of the values, and Legend the name of each series, in which Grafana replaces {{ }} and the name of a label.
	Unit, Legend string
}

// Place describes where the chart has the query.
func (p Panel) Place() string { return p.Dashboard + ": " + p.Title + ": " + p.Expr }

// Monitoring is what the chart has for Prometheus and Grafana.
type Monitoring struct {
	// Rules is a file of rules for Prometheus, with the alerts.
	Rules  []byte
	Alerts []Alert
	Panels []Panel
}

// MonitoringValues returns values with which the chart renders everything for Prometheus and Grafana.
func MonitoringValues() Values {
	enabled := Values{"enabled": true}
	return Values{"serviceMonitor": enabled, "prometheusRule": enabled, "grafanaDashboards": enabled}
}

// MonitoringOf returns what the objects that the chart renders have for Prometheus and Grafana.
func MonitoringOf(rendered []*unstructured.Unstructured) (*Monitoring, error) {
	found := &Monitoring{}
	for _, object := range rendered {
		var err error
		switch {
		case object.GetKind() == "PrometheusRule":
			err = found.addRules(object)
		case object.GetKind() == "ConfigMap" && object.GetLabels()["grafana_dashboard"] == "1":
			err = found.addDashboards(object)
		}
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return found, nil
}

// addRules adds the rules of a PrometheusRule, whose spec is what Prometheus reads from a file.
func (m *Monitoring) addRules(object *unstructured.Unstructured) error {
	text, err := yaml.Marshal(object.Object["spec"])
	if err != nil {
		return err
	}
	var spec struct{ Groups []struct{ Rules []Alert } }
	if err := yaml.Unmarshal(text, &spec); err != nil {
		return err
	}
	m.Rules = text
	for _, group := range spec.Groups {
		m.Alerts = append(m.Alerts, group.Rules...)
	}
	return nil
}

// addDashboards adds the panels of the dashboards in a ConfigMap.
func (m *Monitoring) addDashboards(object *unstructured.Unstructured) error {
	files, _, err := unstructured.NestedStringMap(object.Object, "data")
	if err != nil {
		return err
	}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		var dashboard struct {
			Panels []struct {
				Title       string
				Targets     []struct{ Expr, LegendFormat string }
				FieldConfig struct{ Defaults struct{ Unit string } }
			}
		}
		if err := json.Unmarshal([]byte(files[file]), &dashboard); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for _, panel := range dashboard.Panels {
			for _, target := range panel.Targets {
				m.Panels = append(m.Panels, Panel{
					Dashboard: file, Title: panel.Title, Expr: target.Expr, Unit: panel.FieldConfig.Defaults.Unit, Legend: target.LegendFormat,
				})
			}
		}
	}
	return nil
}

// QueryUses is what a query uses (see hack/tools/prometheus/queries).
type QueryUses struct {
	// Metrics has the labels that each metric is selected by.
	Metrics map[string][]string
	// Groups are the labels of its aggregations and matchings.
	Groups []string
	// Selectors are its selectors of series, without offsets.
	Selectors []string
}

// ParseQueries parses queries with Prometheus's own parser.
func ParseQueries(ctx context.Context, queries []string) ([]QueryUses, error) {
	binary, err := Tool("promql-queries")
	if err != nil {
		return nil, err
	}
	input, err := json.Marshal(queries)
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, binary)
	stderr := &bytes.Buffer{}
	command.Stdin, command.Stderr = bytes.NewReader(input), stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("a query cannot be parsed: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	var uses []QueryUses
	if err := json.Unmarshal(output, &uses); err != nil {
		return nil, err
	}
	return uses, nil
}
