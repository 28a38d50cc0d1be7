// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	// It registers the metrics of the operator: Karpenter's, and those of its controllers.
	_ "github.com/karpenter-capi/karpenter-capi/internal/controller"
)

// The alerts query metrics that the operator has, with the labels that the ServiceMonitor gives them.
func TestAlerts(t *testing.T) {
	rendered := render(t, Operator, Values{"serviceMonitor": Values{"enabled": true}})
	service := the[corev1.Service](t, rendered, "Service")
	from := `namespace="` + service.Namespace + `", job="` + service.Name + `"`
	conditions() // registers the metrics of templates
	known := registered(t)
	rules := alertsOf(t)
	for _, alert := range rules[:len(rules)-1] {
		selectors := regexp.MustCompile(`([a-z_]+)\{([^}]*)\}`).FindAllStringSubmatch(alert.Expr, -1)
		if len(selectors) == 0 {
			t.Errorf("%s queries no metric: %s", alert.Alert, alert.Expr)
		}
		for _, selector := range selectors {
			if !slices.Contains(known, selector[1]) {
				t.Errorf("%s queries %s, which the operator lacks", alert.Alert, selector[1])
			}
			if !strings.HasPrefix(strings.TrimSpace(selector[2]), from) {
				t.Errorf("%s queries {%s}, want %s", alert.Alert, selector[2], from)
			}
		}
		if alert.For == "" || alert.Labels["severity"] == "" || alert.Annotations["summary"] == "" || alert.Annotations["description"] == "" {
			t.Errorf("%s lacks something: %+v", alert.Alert, alert)
		}
	}
	if last := rules[len(rules)-1]; last.Alert != "Mine" {
		t.Errorf("the last rule is %s, want the additional one", last.Alert)
	}
}

// registered returns the names of the operator's metrics, and of the one that Prometheus adds for each target.
func registered(t *testing.T) []string {
	t.Helper()
	registry, ok := metrics.Registry.(prometheus.Collector)
	if !ok {
		t.Fatalf("%T does not describe its metrics", metrics.Registry)
	}
	descriptions := make(chan *prometheus.Desc)
	go func() {
		defer close(descriptions)
		registry.Describe(descriptions)
	}()
	names := []string{"up"}
	for description := range descriptions {
		names = append(names, regexp.MustCompile(`fqName: "([^"]*)"`).FindStringSubmatch(description.String())[1])
	}
	return names
}

// The ServiceMonitor scrapes a port that the Service has.
func TestServiceMonitor(t *testing.T) {
	rendered := render(t, Operator, Matrix()["one cluster, all"])
	monitor := &struct {
		Spec struct {
			SampleLimit       int
			NamespaceSelector struct{ MatchNames []string }
			Endpoints         []struct {
				Port, Path, Interval, Scheme, BearerTokenFile string
				TLSConfig                                     struct{ InsecureSkipVerify bool }
			}
		}
	}{}
	fill(t, rendered, "ServiceMonitor", monitor)
	service := the[corev1.Service](t, rendered, "Service")
	endpoint := monitor.Spec.Endpoints[0]
	if endpoint.Port != service.Spec.Ports[0].Name || endpoint.Path != "/metrics" || endpoint.Interval != "30s" || monitor.Spec.SampleLimit != 5000 {
		t.Errorf("got %+v", monitor.Spec)
	}
	if endpoint.Scheme != "https" || endpoint.BearerTokenFile == "" || !endpoint.TLSConfig.InsecureSkipVerify {
		t.Errorf("got %+v, want HTTPS and the token of Prometheus", endpoint)
	}
	if !slices.Equal(monitor.Spec.NamespaceSelector.MatchNames, []string{service.Namespace}) {
		t.Errorf("it selects the namespaces %v, want %s", monitor.Spec.NamespaceSelector.MatchNames, service.Namespace)
	}
	monitor.Spec.Endpoints = nil
	fill(t, render(t, Operator, Values{
		"serviceMonitor": Values{"enabled": true, "endpointConfig": Values{"path": "/mine"}}, "controller": Values{"metrics": Values{"insecure": true}},
	}), "ServiceMonitor", monitor)
	if endpoint := monitor.Spec.Endpoints[0]; endpoint.Path != "/mine" || endpoint.Scheme != "" || endpoint.BearerTokenFile != "" {
		t.Errorf("got %+v, want HTTP without a token, and the path of endpointConfig", endpoint)
	}
}
