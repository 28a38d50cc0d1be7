// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/karpenter-capi/karpenter-capi/internal/kubeconfig"
	"github.com/karpenter-capi/karpenter-capi/internal/metrics"
)

// expiries reports when the kubeconfigs expire that are in use.
var expiries = &expiryCollector{configs: map[string]*rest.Config{}}

func init() { crmetrics.Registry.MustRegister(expiries) }

// expiryCollector has the client configuration of each cluster that has a kubeconfig.
type expiryCollector struct {
	mu      sync.Mutex
	configs map[string]*rest.Config
}

// follow sets the client configuration of a cluster. It replaces the one before it.
func (e *expiryCollector) follow(cluster string, config *rest.Config) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.configs[cluster] = config
}

// Describe implements prometheus.Collector.
func (e *expiryCollector) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- metrics.KubeconfigExpires.Desc
}

// Collect implements prometheus.Collector.
func (e *expiryCollector) Collect(series chan<- prometheus.Metric) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for cluster, config := range e.configs {
		if at := kubeconfig.Expires(config); !at.IsZero() {
			series <- metrics.KubeconfigExpires.Series(time.Until(at).Seconds(), cluster)
		}
	}
}
