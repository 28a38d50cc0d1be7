// SPDX-License-Identifier: Apache-2.0

package fleetmetrics

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/connection"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/metrics"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
)

// Describe implements prometheus.Collector.
func (c *Controller) Describe(descriptions chan<- *prometheus.Desc) {
	for _, m := range []metrics.Computed{
		metrics.CacheAge, metrics.NodeClaimsWaiting, metrics.Machines, metrics.Offerings, metrics.NodeClaimsPrice, metrics.OfferingPrice,
	} {
		descriptions <- m.Desc
	}
}

// Collect implements prometheus.Collector. If a cache cannot be read, its series are missing, and the scrape succeeds.
func (c *Controller) Collect(series chan<- prometheus.Metric) {
	series <- metrics.CacheAge.Series(c.clusters.ToWorkload.Behind().Seconds(), connection.Workload)
	series <- metrics.CacheAge.Series(c.clusters.ToManagement.Behind().Seconds(), connection.Management)
	if !c.leads.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	world, err := c.read(ctx)
	if err != nil {
		log.Log.Error(err, "cannot compute metrics")
		return
	}
	for _, metric := range c.seriesOf(world) {
		series <- metric
	}
}

// world is what the caches have. The objects are shared with them.
type world struct {
	templates []v1alpha1.KarpenterMachineTemplate
	claims    []karpv1.NodeClaim
	machines  []clusterv1.Machine
}

// read reads the caches.
func (c *Controller) read(ctx context.Context) (*world, error) {
	templates, claims, machines := &v1alpha1.KarpenterMachineTemplateList{}, &karpv1.NodeClaimList{}, &clusterv1.MachineList{}
	if err := c.clusters.Workload.GetClient().List(ctx, templates, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	if err := c.clusters.Workload.GetClient().List(ctx, claims, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	if err := c.clusters.Management.GetClient().List(ctx, machines, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	return &world{templates: templates.Items, claims: claims.Items, machines: machines.Items}, nil
}

// seriesOf returns the series of what exists.
func (c *Controller) seriesOf(w *world) (series []prometheus.Metric) {
	for template, count := range waiting(w) {
		series = append(series, metrics.NodeClaimsWaiting.Series(count, template))
	}
	for key, count := range machines(w) {
		series = append(series, metrics.Machines.Series(count, key.template, key.state))
	}
	for key, count := range offerings(w, c.clock.Now()) {
		series = append(series, metrics.Offerings.Series(count, key.template, strconv.FormatBool(key.available), key.reason))
	}
	for key, sum := range c.running(w) {
		series = append(series, metrics.NodeClaimsPrice.Series(sum, key.pool, key.template, key.zone, key.capacityType))
	}
	if c.prices {
		series = c.appendPrices(series, w)
	}
	return series
}

// waiting returns how many NodeClaims of each template wait for a Machine.
func waiting(w *world) map[string]float64 {
	served := sets.New[types.UID]()
	for i := range w.machines {
		if !lifecycle.IsLeaving(&w.machines[i]) {
			served.Insert(lifecycle.ClaimUID(&w.machines[i]))
		}
	}
	counts := map[string]float64{}
	for i := range w.templates {
		counts[w.templates[i].Name] = 0
	}
	for i := range w.claims {
		if claim := &w.claims[i]; clients.IsTemplate(claim.Spec.NodeClassRef) && nodeclaims.NeedsMachine(claim) && !served.Has(claim.UID) {
			counts[claim.Spec.NodeClassRef.Name]++
		}
	}
	return counts
}

type machinesKey struct{ template, state string }

// states are the states of Machines in metrics.
var states = []string{"linked", "spare", "unlinked", "leaving"}

// machines returns how many Machines of each template have each state.
func machines(w *world) map[machinesKey]float64 {
	claims := sets.New[types.UID]()
	for i := range w.claims {
		claims.Insert(w.claims[i].UID)
	}
	counts := map[machinesKey]float64{}
	for i := range w.templates {
		for _, state := range states {
			counts[machinesKey{w.templates[i].Name, state}] = 0
		}
	}
	for i := range w.machines {
		if template := w.machines[i].Labels[v1alpha1.TemplateLabel]; template != "" {
			counts[machinesKey{template, stateOf(&w.machines[i], claims)}]++
		}
	}
	return counts
}

func stateOf(machine *clusterv1.Machine, claims sets.Set[types.UID]) string {
	switch claim := lifecycle.ClaimUID(machine); {
	case lifecycle.IsLeaving(machine):
		return "leaving"
	case claim == "":
		return "spare"
	case !claims.Has(claim):
		return "unlinked"
	}
	return "linked"
}

type offeringsKey struct {
	template  string
	available bool
	reason    string
}

// offerings returns how many offerings of each template are available, and why others are not.
func offerings(w *world, now time.Time) map[offeringsKey]float64 {
	counts := map[offeringsKey]float64{}
	for i := range w.templates {
		name, status := w.templates[i].Name, &w.templates[i].Status
		rest := float64(status.Offerings - status.AvailableOfferings)
		counts[offeringsKey{template: name, available: true}] = float64(status.AvailableOfferings)
		for _, offering := range catalog.Unavailable(status.UnavailableOfferings, now) {
			counts[offeringsKey{template: name, reason: offering.Reason}]++
			rest--
		}
		for _, group := range status.InvalidOfferings {
			counts[offeringsKey{template: name, reason: group.Reason}] += float64(group.Count)
			rest -= float64(group.Count)
		}
		// An offering can be unavailable and invalid, so the rest can be negative.
		counts[offeringsKey{template: name, reason: "Other"}] = max(0, rest)
	}
	return counts
}

type priceKey struct{ pool, template, zone, capacityType string }

// running returns the sums of the prices of launched NodeClaims.
func (c *Controller) running(w *world) map[priceKey]float64 {
	known := map[string]map[string]*catalog.Type{}
	for i := range w.templates {
		types := c.catalog.Known(w.templates[i].Name)
		byName := make(map[string]*catalog.Type, len(types))
		for j := range types {
			byName[types[j].Name] = &types[j]
		}
		known[w.templates[i].Name] = byName
	}
	sums := map[priceKey]float64{}
	for i := range w.claims {
		claim := &w.claims[i]
		if !clients.IsTemplate(claim.Spec.NodeClassRef) || !nodeclaims.IsLaunched(claim) {
			continue
		}
		template, key := claim.Spec.NodeClassRef.Name, catalog.KeyOf(claim)
		sums[priceKey{claim.Labels[karpv1.NodePoolLabelKey], template, key.Zone, key.CapacityType}] += priceOf(claim, key, known[template][key.InstanceType])
	}
	return sums
}

// priceOf returns the price of the offering of a claim: that of its instance type, or the price at the launch.
func priceOf(claim *karpv1.NodeClaim, key catalog.Key, of *catalog.Type) float64 {
	if of != nil {
		if offering := of.Find(key.Zone, key.CapacityType); offering != nil {
			return offering.Price
		}
	}
	price, err := strconv.ParseFloat(claim.Annotations[v1alpha1.PriceAnnotation], 64)
	if err != nil {
		return 0
	}
	return price
}

// appendPrices appends the price of each offering.
func (c *Controller) appendPrices(series []prometheus.Metric, w *world) []prometheus.Metric {
	for i := range w.templates {
		types := c.catalog.Known(w.templates[i].Name)
		for j := range types {
			for _, offering := range types[j].Offerings {
				series = append(series, metrics.OfferingPrice.Series(offering.Price, w.templates[i].Name, types[j].Name, offering.Zone, offering.CapacityType))
			}
		}
	}
	return series
}
