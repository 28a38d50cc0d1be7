// SPDX-License-Identifier: Apache-2.0

package fleetmetrics

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/metrics"
)

// Controller serves the metrics of the served Cluster.
type Controller struct {
	clusters *clients.Clusters
	catalog  *catalog.Catalog
	clock    clock.PassiveClock
	// prices is whether each offering has a series with its price.
	prices bool
	leads  atomic.Bool
}

// NewController returns the controller for the served Cluster. With prices, each offering has a series with its price.
func NewController(clusters *clients.Clusters, catalog *catalog.Catalog, clock clock.PassiveClock, prices bool) *Controller {
	return &Controller{clusters: clusters, catalog: catalog, clock: clock, prices: prices}
}

// Register lets the metrics be served, and observes launches while the operator leads.
func (c *Controller) Register(_ context.Context, mgr manager.Manager) error {
	if err := crmetrics.Registry.Register(c); err != nil {
		return err
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		c.leads.Store(true)
		defer c.leads.Store(false)
		return c.watch(ctx)
	}))
}

// observe observes a phase of a launch.
func observe(template, phase string, took time.Duration) {
	metrics.LaunchPhase.WithLabelValues(template, phase).Observe(took.Seconds())
}
