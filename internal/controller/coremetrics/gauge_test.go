// SPDX-License-Identifier: Apache-2.0

package coremetrics

import (
	"slices"
	"strconv"
	"sync"
	"testing"

	opmetrics "github.com/awslabs/operatorpkg/metrics"
	"github.com/awslabs/operatorpkg/status"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricspod "sigs.k8s.io/karpenter/pkg/controllers/metrics/pod"

	"github.com/karpenter-capi/karpenter-capi/test/harness/property"
)

var gaugeLabels = []opmetrics.Label{{Name: "type"}, {Name: "name"}, {Name: "namespace"}, {Name: "reason"}}

func newGauge() opmetrics.GaugeMetric {
	return opmetrics.NewPrometheusGauge(crmetrics.Registry, prometheus.GaugeOpts{Name: "g", Help: "of a test"}, gaugeLabels, opmetrics.GA)
}

// A replaced gauge has the same series as the original one after any calls for objects.
func TestGaugeIsTheSame(t *testing.T) {
	property.Check(t, 300, func(rt *rapid.T) {
		useRegistry(t)
		core := newGauge()
		coreRegistry := crmetrics.Registry
		crmetrics.Registry = prometheus.NewRegistry()
		ours := newGauge()
		replaceGauge(&ours, false)
		value := rapid.SampledFrom([]string{"a", "b"})
		for range rapid.IntRange(1, 20).Draw(rt, "calls") {
			labels := map[string]string{}
			for _, label := range gaugeLabels {
				labels[label.Name] = value.Draw(rt, label.Name)
			}
			var call func(opmetrics.GaugeMetric)
			switch rapid.IntRange(0, 7).Draw(rt, "call") {
			case 0:
				call = func(g opmetrics.GaugeMetric) { g.Delete(labels) }
			case 1:
				delete(labels, "type")
				call = func(g opmetrics.GaugeMetric) { g.DeletePartialMatch(labels) }
			case 2:
				labels = map[string]string{"name": labels["name"], "namespace": labels["namespace"]}
				call = func(g opmetrics.GaugeMetric) { g.DeletePartialMatch(labels) }
			case 3:
				labels["unknown"] = "a"
				call = func(g opmetrics.GaugeMetric) { g.DeletePartialMatch(labels) }
			default:
				set := float64(rapid.IntRange(0, 3).Draw(rt, "value"))
				call = func(g opmetrics.GaugeMetric) { g.Set(set, labels) }
			}
			call(core)
			call(ours)
		}
		got := scraped(t)
		crmetrics.Registry = coreRegistry
		if diff := difference(scraped(t), got); diff != "" {
			rt.Fatalf("(-core +ours):\n%s", diff)
		}
		ours.Reset()
		if left := len(ours.(*gauge).objects); left != 0 {
			rt.Fatalf("%d objects remain after Reset", left)
		}
	})
}

// An object whose series are deleted needs no memory.
func TestGaugeForgetsObjects(t *testing.T) {
	useRegistry(t)
	g := newGauge()
	replaceGauge(&g, true)
	labels := map[string]string{"type": "Ready", "name": "a", "namespace": "", "reason": "Ready"}
	g.Set(1, labels)
	g.Set(2, labels)
	g.DeletePartialMatch(map[string]string{"name": "a", "namespace": ""})
	if left := len(g.(*gauge).objects); left != 0 {
		t.Errorf("%d objects remain", left)
	}
}

// The race detector checks calls by several reconciles during scrapes.
func TestGaugeIsSafeToScrape(t *testing.T) {
	useRegistry(t)
	g := newGauge()
	replaceGauge(&g, true)
	var wait sync.WaitGroup
	for worker := range 4 {
		wait.Go(func() {
			for i := range 100 {
				labels := map[string]string{"type": strconv.Itoa(worker), "name": strconv.Itoa(i % 3), "namespace": "", "reason": ""}
				g.Set(float64(i), labels)
				g.DeletePartialMatch(labels)
			}
		})
	}
	for range 10 {
		scraped(t)
	}
	wait.Wait()
	if left := len(scraped(t).Values); left != 0 {
		t.Errorf("%d series remain", left)
	}
}

// Each gauge that is replaced has the labels by which its series are found.
func TestReplacedGaugesNameTheirObject(t *testing.T) {
	useRegistry(t)
	for _, gauge := range []*opmetrics.GaugeMetric{&metricspod.PodUnboundTimeSeconds, &metricspod.PodProvisioningUnboundTimeSeconds} {
		original := *gauge
		t.Cleanup(func() { *gauge = original })
	}
	Replace(metricspod.NewController(nil, nil), nil)
	replaced := []opmetrics.GaugeMetric{metricspod.PodUnboundTimeSeconds, metricspod.PodProvisioningUnboundTimeSeconds}
	nodes := Replace(newStatusControllers(nil, nil)["Node"], nil).(*statusController).reconciler.(*status.GenericObjectController[*corev1.Node])
	replaced = append(replaced, nodes.ConditionCount, nodes.ConditionCurrentStatusSeconds, nodes.TerminationCurrentTimeSeconds,
		status.ConditionCount, status.ConditionCurrentStatusSeconds, status.TerminationCurrentTimeSeconds)
	for _, g := range replaced {
		desc := g.(*gauge).desc
		for _, want := range []string{status.MetricLabelNamespace, status.MetricLabelName} {
			if !slices.ContainsFunc(g.Labels(), func(l opmetrics.Label) bool { return l.Name == want }) {
				t.Errorf("%s lacks the label %s", desc, want)
			}
		}
	}
}
