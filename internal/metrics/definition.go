// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/samber/lo"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Type is the type of a metric in Prometheus.
type Type string

// The types of metrics.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// Label is a label of a metric.
type Label struct {
	Name string
	// Values describes the values, so that a reader knows how many there can be.
	Values string
}

// Definition describes a metric.
type Definition struct {
	Name string
	Type Type
	// Help is the meaning of the value.
	Help string
	// Question is what a user asks who looks at the metric.
	Question string
	Labels   []Label
}

var definitions []Definition

// All returns the definitions of all metrics of this operator.
func All() []Definition { return slices.Clone(definitions) }

func (d Definition) labelNames() []string {
	return lo.Map(d.Labels, func(label Label, _ int) string { return label.Name })
}

// add adds a definition of a type to those of the operator.
func (d Definition) add(as Type) Definition {
	d.Type = as
	definitions = append(definitions, d)
	return d
}

// register adds a metric to those that are served.
func register[T prometheus.Collector](metric T) T {
	crmetrics.Registry.MustRegister(metric)
	return metric
}

func counter(d Definition) *prometheus.CounterVec {
	d = d.add(Counter)
	return register(prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.Name, Help: d.Help}, d.labelNames()))
}

func gauge(d Definition) *prometheus.GaugeVec {
	d = d.add(Gauge)
	return register(prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: d.Name, Help: d.Help}, d.labelNames()))
}

func histogram(d Definition, buckets ...float64) *prometheus.HistogramVec {
	d = d.add(Histogram)
	return register(prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: d.Name, Help: d.Help, Buckets: buckets}, d.labelNames()))
}

// Computed is a gauge whose series are computed when they are scraped. A collector sends them.
type Computed struct {
	// Desc describes the gauge to the registry.
	Desc *prometheus.Desc
}

func computed(d Definition) Computed {
	d = d.add(Gauge)
	return Computed{Desc: prometheus.NewDesc(d.Name, d.Help, d.labelNames(), nil)}
}

// Series returns one series. The labels have the order of the definition.
func (c Computed) Series(value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(c.Desc, prometheus.GaugeValue, value, labels...)
}
