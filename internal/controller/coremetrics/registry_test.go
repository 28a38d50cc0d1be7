// SPDX-License-Identifier: Apache-2.0

package coremetrics

import (
	"fmt"
	"strings"
	"testing"

	opmetrics "github.com/awslabs/operatorpkg/metrics"
	"github.com/awslabs/operatorpkg/status"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// scrape is what one scrape reads: the value of each series by name and labels, and the text of each name.
type scrape struct {
	Texts  map[string]string
	Values map[string]float64
}

// useRegistry lets the test have a registry of its own, in which operatorpkg's deprecated gauges have no series.
func useRegistry(t testing.TB) {
	t.Helper()
	registry := crmetrics.Registry
	t.Cleanup(func() { crmetrics.Registry = registry })
	crmetrics.Registry = prometheus.NewRegistry()
	for _, deprecated := range []*opmetrics.GaugeMetric{
		&status.ConditionCount, &status.ConditionCurrentStatusSeconds, &status.TerminationCurrentTimeSeconds,
	} {
		original := *deprecated
		t.Cleanup(func() { *deprecated = original })
		original.Reset()
		crmetrics.Registry.MustRegister(original.(prometheus.Collector))
	}
	for _, deprecated := range []any{status.ConditionDuration, status.ConditionTransitionsTotal, status.TerminationDuration} {
		deprecated.(interface{ Reset() }).Reset()
		crmetrics.Registry.MustRegister(deprecated.(prometheus.Collector))
	}
}

// scraped returns all series of the test's registry.
func scraped(t testing.TB) scrape {
	t.Helper()
	families, err := crmetrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	s := scrape{Texts: map[string]string{}, Values: map[string]float64{}}
	for _, f := range families {
		s.Texts[f.GetName()] = fmt.Sprintf("%s %s", f.GetType(), f.GetHelp())
		for _, metric := range f.GetMetric() {
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", label.GetName(), label.GetValue()))
			}
			s.add(f.GetName(), strings.Join(labels, ","), metric)
		}
	}
	return s
}

func (s scrape) add(name, labels string, metric *dto.Metric) {
	if histogram := metric.GetHistogram(); histogram != nil {
		s.Values[fmt.Sprintf("%s_sum{%s}", name, labels)] = histogram.GetSampleSum()
		s.Values[fmt.Sprintf("%s_count{%s}", name, labels)] = float64(histogram.GetSampleCount())
		return
	}
	s.Values[fmt.Sprintf("%s{%s}", name, labels)] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
}

// difference returns how two scrapes differ. Durations have a tolerance for floating-point numbers only.
func difference(core, ours any) string {
	return cmp.Diff(core, ours, cmpopts.EquateApprox(1e-12, 1e-6))
}
