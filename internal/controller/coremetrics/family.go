// SPDX-License-Identifier: Apache-2.0

package coremetrics

import (
	"cmp"
	"slices"
	"strings"

	opmetrics "github.com/awslabs/operatorpkg/metrics"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/karpenter/pkg/metrics"
)

// family is one of core's gauges.
type family struct{ desc *prometheus.Desc }

// labels are sorted by name. Series share them.
type labels []*dto.LabelPair

// familyOf replaces a gauge that has no series yet.
func familyOf(gauge opmetrics.GaugeMetric) family {
	crmetrics.Registry.Unregister(gauge.(prometheus.Collector))
	return family{desc: descOf(gauge)}
}

// metric returns one series.
func (f family) metric(value float64, of labels) prometheus.Metric {
	return &series{desc: f.desc, labels: of, value: value}
}

// append appends one series for each resource.
func (f family) append(series []prometheus.Metric, values map[string]float64, of labels) []prometheus.Metric {
	for resource, value := range values {
		label := newLabel(metrics.ResourceTypeLabel, resource)
		at, _ := slices.BinarySearchFunc(of, label, byName)
		series = append(series, f.metric(value, slices.Concat(of[:at], labels{label}, of[at:])))
	}
	return series
}

func newLabel(name, value string) *dto.LabelPair { return &dto.LabelPair{Name: &name, Value: &value} }

func byName(a, b *dto.LabelPair) int { return cmp.Compare(a.GetName(), b.GetName()) }

// valuesOf returns the values of resources by the label of the resource.
func valuesOf(list corev1.ResourceList) map[string]float64 {
	values := make(map[string]float64, len(list))
	for name, quantity := range list {
		value := float64(quantity.Value())
		if name == corev1.ResourceCPU {
			value = float64(quantity.MilliValue()) / 1000
		}
		values[nameOf(string(name))] = value
	}
	return values
}

// nameOf returns the label of a resource, or the name of a label in metrics.
func nameOf(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), "-", "_")
}
