// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"time"

	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"gonum.org/v1/plot/plotter"

	"github.com/karpenter-capi/karpenter-capi/test/manifests/charts"
)

// step is the time between two points of a record.
const step = 2 * time.Second

// Record is what a panel shows of a run.
type Record struct {
	Title, Unit string
	// Lines are its series that have a number.
	Lines []Line
}

// Line is a series. X is in seconds since the start of the run.
type Line struct {
	Name   string
	Points plotter.XYs
}

// Record returns what the panels of a dashboard show of a run that has started at a time.
func (s *Server) Record(ctx context.Context, panels []charts.Panel, target Target, start time.Time) ([]Record, error) {
	var records []Record
	for _, panel := range panels {
		query, err := target.Fill(panel.Expr)
		if err != nil {
			return nil, err
		}
		result, _, err := s.api.QueryRange(ctx, query, prometheusv1.Range{Start: start, End: time.Now(), Step: step})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", query, err)
		}
		matrix, is := result.(model.Matrix)
		if !is {
			return nil, fmt.Errorf("%s: got a %s", query, result.Type())
		}
		if last := len(records) - 1; last < 0 || records[last].Title != panel.Title {
			records = append(records, Record{Title: panel.Title, Unit: panel.Unit})
		}
		record := &records[len(records)-1]
		record.Lines = append(record.Lines, linesOf(matrix, panel.Legend, start)...)
	}
	return records, nil
}

// linesOf returns the lines of the series that have a number, by name.
func linesOf(matrix model.Matrix, legend string, start time.Time) []Line {
	var lines []Line
	for _, series := range matrix {
		line := Line{Name: nameOf(legend, series.Metric)}
		for _, pair := range series.Values {
			if value := float64(pair.Value); !math.IsNaN(value) && !math.IsInf(value, 0) {
				line.Points = append(line.Points, plotter.XY{X: pair.Timestamp.Time().Sub(start).Seconds(), Y: value})
			}
		}
		if len(line.Points) > 0 {
			lines = append(lines, line)
		}
	}
	slices.SortFunc(lines, func(a, b Line) int { return cmp.Compare(a.Name, b.Name) })
	return lines
}

// label is a label in the legend of a panel.
var label = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)

// nameOf returns the name of a series, as Grafana does.
func nameOf(legend string, labels model.Metric) string {
	return label.ReplaceAllStringFunc(legend, func(found string) string {
		return string(labels[model.LabelName(label.FindStringSubmatch(found)[1])])
	})
}
