// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var reachable = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "karpenter_capi_cluster_reachable",
	Help: "1 while the API server of the cluster answers, and the caches of the cluster follow it. 0 while launches and deletions wait for that.",
}, []string{"cluster"})

var disturbed = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "karpenter_capi_cluster_disturbances_total",
	Help: "How often something could hide a write or an event of Machines and MachinePools from a client of the cluster: failed requests, broken watches, a start, a clock that was set. MachinePools of the management cluster shrink only some time after that.",
}, []string{"cluster"})

func init() { metrics.Registry.MustRegister(reachable, disturbed) }
