// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/karpenter-capi/karpenter-capi/test/manifests/charts"
)

// Questions are what Prometheus must have an answer to.
type Questions struct {
	// Panels are the queries of the dashboards, with the values of variables.
	Panels []string
	// Alerts are the names of the alerts.
	Alerts []string
	// Selectors are those of all panels and alerts. Without series for them, a condition that does not hold shows nothing.
	Selectors []string
}

// QuestionsOf returns the questions of the chart about a target.
func QuestionsOf(ctx context.Context, chart *charts.Monitoring, target Target) (*Questions, error) {
	asked := &Questions{}
	for _, panel := range chart.Panels {
		query, err := target.Fill(panel.Expr)
		if err != nil {
			return nil, err
		}
		asked.Panels = append(asked.Panels, query)
	}
	queries := slices.Clone(asked.Panels)
	for _, alert := range chart.Alerts {
		asked.Alerts, queries = append(asked.Alerts, alert.Alert), append(queries, alert.Expr)
	}
	parsed, err := charts.ParseQueries(ctx, queries)
	if err != nil {
		return nil, err
	}
	selectors := sets.New[string]()
	for _, uses := range parsed {
		selectors.Insert(uses.Selectors...)
	}
	asked.Selectors = sets.List(selectors)
	return asked, nil
}

// Missing returns what is asked for and has no answer, unless its absence is explained, and each explanation of what is not asked for.
func Missing(asked []string, answered sets.Set[string], explained map[string]string) []string {
	missing := sets.New[string]()
	for _, question := range asked {
		if _, known := explained[question]; !known && !answered.Has(question) {
			missing.Insert(question)
		}
	}
	for question := range explained {
		if !slices.Contains(asked, question) {
			missing.Insert(question + " is explained, and nothing asks for it")
		}
	}
	return sets.List(missing)
}
