// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
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
	// Some are registered when the operator starts.
	known := append(registered(t), slices.Collect(maps.Keys(documentedMetrics(t)))...)
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

// serviceMonitor has the fields of a ServiceMonitor that are checked.
type serviceMonitor struct {
	Spec struct {
		SampleLimit       int
		NamespaceSelector struct{ MatchNames []string }
		Endpoints         []endpoint
	}
}

type endpoint struct {
	Port, Path, Interval, Scheme, BearerTokenFile string
	Authorization                                 struct{ Credentials *corev1.SecretKeySelector }
	TLSConfig                                     tlsConfig
}

type tlsConfig struct {
	InsecureSkipVerify bool
	ServerName         string
	CA                 struct{ Secret, ConfigMap *corev1.SecretKeySelector }
}

// The ServiceMonitor scrapes a port that the Service has.
func TestServiceMonitor(t *testing.T) {
	rendered := render(t, Operator, Matrix()["one cluster, all"])
	monitor := &serviceMonitor{}
	fill(t, rendered, "ServiceMonitor", monitor)
	service := the[corev1.Service](t, rendered, "Service")
	endpoint := monitor.Spec.Endpoints[0]
	if endpoint.Port != service.Spec.Ports[0].Name || endpoint.Path != "/metrics" || endpoint.Interval != "30s" || monitor.Spec.SampleLimit != 5000 {
		t.Errorf("got %+v", monitor.Spec)
	}
	if !slices.Equal(monitor.Spec.NamespaceSelector.MatchNames, []string{service.Namespace}) {
		t.Errorf("it selects the namespaces %v, want %s", monitor.Spec.NamespaceSelector.MatchNames, service.Namespace)
	}
}

// How Prometheus authenticates, and verifies the operator.
func TestScrapeIsAuthenticated(t *testing.T) {
	const tokenFile = "/var/run/secrets/kubernetes.io/serviceaccount/token"
	key := func(name, key string) *corev1.SecretKeySelector {
		return &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key}
	}
	token := Values{"credentials": Values{"name": "prometheus-token", "key": "token"}}
	secret := Values{"certificateSecret": "metrics-tls"}
	for name, tc := range map[string]struct {
		monitor, metrics Values
		want             func(*endpoint)
	}{
		"by default": {want: func(e *endpoint) { e.BearerTokenFile, e.TLSConfig.InsecureSkipVerify = tokenFile, true }},
		"a token in a Secret": {monitor: Values{"authorization": token}, want: func(e *endpoint) {
			e.Authorization.Credentials, e.TLSConfig.InsecureSkipVerify = key("prometheus-token", "token"), true
		}},
		"a certificate in a Secret": {metrics: secret, want: func(e *endpoint) {
			e.BearerTokenFile, e.TLSConfig.ServerName, e.TLSConfig.CA.Secret = tokenFile, release+"."+namespace+".svc", key("metrics-tls", "ca.crt")
		}},
		"both": {monitor: Values{"authorization": token}, metrics: secret, want: func(e *endpoint) {
			e.Authorization.Credentials, e.TLSConfig.ServerName, e.TLSConfig.CA.Secret = key("prometheus-token", "token"), release+"."+namespace+".svc", key("metrics-tls", "ca.crt")
		}},
		"another authority": {
			monitor: Values{"endpointConfig": Values{"tlsConfig": Values{"serverName": "operator", "ca": Values{"configMap": Values{"name": "ca", "key": "ca.crt"}}}}},
			metrics: secret,
			want: func(e *endpoint) {
				e.BearerTokenFile, e.TLSConfig.ServerName, e.TLSConfig.CA.ConfigMap = tokenFile, "operator", key("ca", "ca.crt")
			},
		},
		"authorization of endpointConfig": {monitor: Values{"endpointConfig": Values{"authorization": token}}, want: func(e *endpoint) {
			e.Authorization.Credentials, e.TLSConfig.InsecureSkipVerify = key("prometheus-token", "token"), true
		}},
		"no authentication": {
			monitor: Values{"endpointConfig": Values{"path": "/mine"}}, metrics: Values{"insecure": true},
			want: func(e *endpoint) { e.Scheme, e.Path = "", "/mine" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			monitor := Values{"enabled": true}
			maps.Copy(monitor, tc.monitor)
			values := Values{"serviceMonitor": monitor}
			if tc.metrics != nil {
				values["controller"] = Values{"metrics": tc.metrics}
			}
			got := &serviceMonitor{}
			fill(t, render(t, Operator, values), "ServiceMonitor", got)
			want := endpoint{Port: "metrics", Path: "/metrics", Scheme: "https"}
			tc.want(&want)
			if diff := cmp.Diff(want, got.Spec.Endpoints[0]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The operator reads the certificate of the metrics endpoint where the chart mounts the Secret.
func TestMetricsCertificate(t *testing.T) {
	deployment := the[appsv1.Deployment](t, render(t, Operator, Values{"controller": Values{"metrics": Values{"certificateSecret": "metrics-tls"}}}), "Deployment")
	pod := deployment.Spec.Template.Spec
	mounts := []corev1.VolumeMount{{Name: "metrics-certificate", MountPath: readSettings(t, deployment).MetricsCertPath, ReadOnly: true}}
	if diff := cmp.Diff(mounts, pod.Containers[0].VolumeMounts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	volumes := []corev1.Volume{{Name: mounts[0].Name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: "metrics-tls", Items: []corev1.KeyToPath{{Key: "tls.crt", Path: "tls.crt"}, {Key: "tls.key", Path: "tls.key"}},
	}}}}
	if diff := cmp.Diff(volumes, pod.Volumes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
