// SPDX-License-Identifier: Apache-2.0

// Command queries parses queries of Prometheus with Prometheus's own parser. It reads a list of queries in JSON from its standard
// input, and writes what each query uses. It fails if a query cannot be parsed.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// query is what a query uses.
type query struct {
	// Metrics has the labels that each metric is selected by.
	Metrics map[string][]string `json:"metrics"`
	// Groups are the labels of its aggregations and matchings.
	Groups []string `json:"groups"`
	// Selectors are its selectors of series, without offsets.
	Selectors []string `json:"selectors"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var texts []string
	if err := json.NewDecoder(os.Stdin).Decode(&texts); err != nil {
		return err
	}
	parsed := make([]query, 0, len(texts))
	for _, text := range texts {
		of, err := parse(text)
		if err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
		parsed = append(parsed, of)
	}
	return json.NewEncoder(os.Stdout).Encode(parsed)
}

func parse(text string) (query, error) {
	of := query{Metrics: map[string][]string{}}
	expression, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		return of, err
	}
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			name := n.Name
			var names []string
			for _, matcher := range n.LabelMatchers {
				if matcher.Name == labels.MetricName {
					name = matcher.Value
				} else {
					names = append(names, matcher.Name)
				}
			}
			of.Metrics[name] = append(of.Metrics[name], names...)
			of.Selectors = append(of.Selectors, (&parser.VectorSelector{Name: n.Name, LabelMatchers: n.LabelMatchers}).String())
		case *parser.AggregateExpr:
			of.Groups = append(of.Groups, n.Grouping...)
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				of.Groups = append(of.Groups, n.VectorMatching.MatchingLabels...)
				of.Groups = append(of.Groups, n.VectorMatching.Include...)
			}
		}
		return nil
	})
	return of, nil
}
