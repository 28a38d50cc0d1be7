// SPDX-License-Identifier: Apache-2.0

package coremetrics

import (
	"maps"
	"slices"
	"sync"

	opmetrics "github.com/awslabs/operatorpkg/metrics"
	"github.com/awslabs/operatorpkg/status"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/types"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// gauge is a gauge with the series of many objects, by the namespace and the name of the object. All labels that it is
// called with contain both.
type gauge struct {
	// GaugeMetric is the replaced gauge, which has no series.
	opmetrics.GaugeMetric
	desc  *prometheus.Desc
	grows bool

	mu      sync.Mutex
	objects map[types.NamespacedName]*object
}

// object has the series of one object.
type object struct {
	*prometheus.MetricVec
	series int
}

// replaceGauge replaces a gauge that has no series yet, unless it has been replaced before.
func replaceGauge(original *opmetrics.GaugeMetric, grows bool) {
	if _, replaced := (*original).(*gauge); replaced {
		return
	}
	crmetrics.Registry.Unregister((*original).(prometheus.Collector))
	g := &gauge{GaugeMetric: *original, desc: descOf(*original), grows: grows, objects: map[types.NamespacedName]*object{}}
	crmetrics.Registry.MustRegister(g)
	*original = g
}

// descOf returns the description of a gauge: name, help and labels.
func descOf(gauge opmetrics.GaugeMetric) *prometheus.Desc {
	descriptions := make(chan *prometheus.Desc, 1)
	gauge.(prometheus.Collector).Describe(descriptions)
	return <-descriptions
}

// Set sets the value of a series.
func (g *gauge) Set(value float64, labels map[string]string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := keyOf(labels)
	of := g.objects[key]
	if of == nil {
		of = &object{}
		of.MetricVec = prometheus.NewMetricVec(g.desc, func(values ...string) prometheus.Metric {
			of.series++
			return &series{desc: g.desc, labels: prometheus.MakeLabelPairs(g.desc, values), grows: g.grows}
		})
		g.objects[key] = of
	}
	lo.Must(of.GetMetricWith(labels)).(*series).set(value)
}

// Delete deletes a series.
func (g *gauge) Delete(labels map[string]string) { g.DeletePartialMatch(labels) }

// DeletePartialMatch deletes the series that have all labels.
func (g *gauge) DeletePartialMatch(labels map[string]string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := keyOf(labels)
	of := g.objects[key]
	if of == nil {
		return
	}
	of.series -= of.DeletePartialMatch(labels)
	if of.series == 0 {
		delete(g.objects, key)
	}
}

// Reset deletes all series.
func (g *gauge) Reset() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.objects)
}

// Describe implements prometheus.Collector.
func (g *gauge) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- g.desc }

// Collect implements prometheus.Collector. Controllers do not wait while it sends.
func (g *gauge) Collect(metrics chan<- prometheus.Metric) {
	g.mu.Lock()
	objects := slices.Collect(maps.Values(g.objects))
	g.mu.Unlock()
	for _, of := range objects {
		of.Collect(metrics)
	}
}

func keyOf(labels map[string]string) types.NamespacedName {
	return types.NamespacedName{Namespace: labels[status.MetricLabelNamespace], Name: labels[status.MetricLabelName]}
}
