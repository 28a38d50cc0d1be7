// SPDX-License-Identifier: Apache-2.0

package coremetrics

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	metricsnode "sigs.k8s.io/karpenter/pkg/controllers/metrics/node"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/utils/resources"
)

// nodes computes the metrics of core's controller metrics.node when they are scraped.
type nodes struct {
	cluster *state.Cluster
	leads   atomic.Bool
	// wellKnown has the label of Nodes for each label of metrics.
	wellKnown map[string]string

	overhead, podRequests, podLimits, daemonRequests, daemonLimits, allocatable, lifetime, utilization family
}

// newNodes replaces the gauges that core's controller has registered.
func newNodes(cluster *state.Cluster) *nodes {
	n := &nodes{
		cluster:        cluster,
		wellKnown:      map[string]string{},
		overhead:       familyOf(metricsnode.SystemOverhead),
		podRequests:    familyOf(metricsnode.TotalPodRequests),
		podLimits:      familyOf(metricsnode.TotalPodLimits),
		daemonRequests: familyOf(metricsnode.TotalDaemonRequests),
		daemonLimits:   familyOf(metricsnode.TotalDaemonLimits),
		allocatable:    familyOf(metricsnode.Allocatable),
		lifetime:       familyOf(metricsnode.Lifetime),
		utilization:    familyOf(metricsnode.ClusterUtilization),
	}
	for label := range karpv1.WellKnownLabels {
		if _, name, ok := strings.Cut(label, "/"); ok {
			n.wellKnown[nameOf(name)] = label
		}
	}
	crmetrics.Registry.MustRegister(n)
	return n
}

// Register lets the metrics have series while the operator leads, like those of core's controllers.
func (n *nodes) Register(_ context.Context, mgr manager.Manager) error {
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		n.leads.Store(true)
		defer n.leads.Store(false)
		<-ctx.Done()
		return nil
	}))
}

// Describe implements prometheus.Collector.
func (n *nodes) Describe(descriptions chan<- *prometheus.Desc) {
	for _, f := range []family{
		n.overhead, n.podRequests, n.podLimits, n.daemonRequests, n.daemonLimits, n.allocatable, n.lifetime, n.utilization,
	} {
		descriptions <- f.desc
	}
}

// Collect implements prometheus.Collector. The cluster state is locked while the series are computed, but not while they
// are sent.
func (n *nodes) Collect(metrics chan<- prometheus.Metric) {
	if !n.leads.Load() {
		return
	}
	for _, metric := range n.compute() {
		metrics <- metric
	}
}

// compute returns the series of all Nodes, with the values that core computes (karpenter:
// pkg/controllers/metrics/node/controller.go, buildMetrics and buildClusterUtilizationMetric).
func (n *nodes) compute() (metrics []prometheus.Metric) {
	allocatable, utilized, seen := corev1.ResourceList{}, corev1.ResourceList{}, sets.New[string]()
	for node := range n.cluster.Nodes() {
		if node.Node == nil {
			continue
		}
		requests := node.PodRequests()
		resources.MergeInto(allocatable, node.Allocatable())
		resources.MergeInto(utilized, requests)
		// A second node for the same Node would have the same series, which would fail the scrape.
		if seen.Has(node.Node.Name) {
			continue
		}
		seen.Insert(node.Node.Name)
		labels, status := n.labelsOf(node), node.Node.Status
		metrics = append(metrics, n.lifetime.metric(time.Since(node.Node.CreationTimestamp.Time).Seconds(), labels))
		metrics = n.overhead.append(metrics, valuesOf(resources.Subtract(status.Capacity, status.Allocatable)), labels)
		metrics = n.podRequests.append(metrics, valuesOf(requests), labels)
		metrics = n.podLimits.append(metrics, valuesOf(node.PodLimits()), labels)
		metrics = n.daemonRequests.append(metrics, valuesOf(node.DaemonSetRequests()), labels)
		metrics = n.daemonLimits.append(metrics, valuesOf(node.DaemonSetLimits()), labels)
		metrics = n.allocatable.append(metrics, valuesOf(status.Allocatable), labels)
	}
	used, percentages := valuesOf(utilized), valuesOf(allocatable)
	maps.DeleteFunc(percentages, func(_ string, all float64) bool { return all == 0 })
	for resource, all := range percentages {
		percentages[resource] = 100 * used[resource] / all
	}
	return n.utilization.append(metrics, percentages, nil)
}

// labelsOf returns the labels of a Node's series, without the resource.
func (n *nodes) labelsOf(node *state.StateNode) labels {
	all := labels{
		newLabel("node_name", node.Node.Name),
		newLabel("phase", string(node.Node.Status.Phase)),
		newLabel("managed", strconv.FormatBool(node.Managed())),
	}
	for name, label := range n.wellKnown {
		all = append(all, newLabel(name, node.Node.Labels[label]))
	}
	slices.SortFunc(all, byName)
	return all
}
