// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/samber/lo"
	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/budget"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
)

// +kubebuilder:rbac:roleName=workload-role,groups=resource.k8s.io,resources=resourceslices,verbs=list;watch

// devices returns the devices that DRA drivers publish for a Node; none if Karpenter ignores them.
func (r *Reconciler) devices(ctx context.Context, node string) (catalog.Devices, error) {
	if !r.dra {
		return catalog.Devices{}, nil
	}
	published := &resourcev1.ResourceSliceList{}
	if err := r.clusters.Workload.GetClient().List(ctx, published, client.MatchingFields{clients.SliceNodeField: node}, client.UnsafeDisableDeepCopy); err != nil {
		return catalog.Devices{}, fmt.Errorf("listing the ResourceSlices of Node %s: %w", node, err)
	}
	return catalog.PublishedDevices(published.Items), nil
}

// maxObserved is how many instance types can have observed devices, maxGroups and maxCounterSets how many of these an instance
// type can have in the status. What is larger is not learned, and has to be declared.
const maxObserved, maxGroups, maxCounterSets = 16, 128, 64

// learnDevices returns the devices of the instance types that differ from their declaration, by name. It learns from the Nodes
// that exist and, for types without Nodes, from what is stored for the revision. The order of the reports does not matter.
func learnDevices(stored []v1alpha1.ObservedDevices, reports []report, types map[string]*catalog.Type, revision string) []v1alpha1.ObservedDevices {
	known := map[string]v1alpha1.ObservedDevices{}
	for _, o := range stored {
		if catalog.IsRevision(o.Revision, revision) {
			known[o.InstanceType] = o
		}
	}
	published := map[string][]catalog.Devices{}
	for _, r := range reports {
		// A Node whose driver does not run yet publishes nothing.
		if !r.devices.Empty() {
			published[r.instanceType] = append(published[r.instanceType], r.devices)
		}
	}
	var learned []v1alpha1.ObservedDevices
	for _, name := range lo.Union(lo.Keys(known), lo.Keys(published)) {
		if types[name] == nil {
			continue
		}
		o := observeDevices(known[name], published[name])
		o.InstanceType, o.Revision = name, revision
		fits := len(o.Devices) <= maxGroups && len(o.DeviceCounters) <= maxCounterSets && budget.Size(o) <= budget.Devices
		if fits && !sameOfDrivers(observedDevices(o), types[name].Devices) {
			learned = append(learned, o)
		}
	}
	byName := func(a, b v1alpha1.ObservedDevices) int { return cmp.Compare(a.InstanceType, b.InstanceType) }
	slices.SortFunc(learned, func(a, b v1alpha1.ObservedDevices) int { return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), byName(a, b)) })
	learned = learned[:min(maxObserved, budget.Fit(learned, budget.Devices))]
	slices.SortFunc(learned, byName)
	return learned
}

func observedDevices(o v1alpha1.ObservedDevices) catalog.Devices {
	return catalog.Devices{Groups: o.Devices, Counters: o.DeviceCounters}
}

// sameOfDrivers reports whether devices are those that are declared for their drivers.
func sameOfDrivers(observed, declared catalog.Devices) bool {
	drivers := observed.Drivers()
	return observed.Same(catalog.Devices{
		Groups:   lo.Filter(declared.Groups, func(g v1alpha1.Device, _ int) bool { return lo.HasKey(drivers, g.Driver) }),
		Counters: lo.Filter(declared.Counters, func(c v1alpha1.DeviceCounters, _ int) bool { return lo.HasKey(drivers, c.Driver) }),
	})
}

// observeDevices returns the devices of one type. As with capacity, Karpenter does not use what only one Node has published after
// that Node is deleted, until a second Node publishes the same, because the first one can have been broken.
func observeDevices(known v1alpha1.ObservedDevices, published []catalog.Devices) v1alpha1.ObservedDevices {
	if len(published) == 0 {
		if known.Nodes == 1 {
			known.Nodes = 0
		}
		return known
	}
	before := separate(observedDevices(known))
	most := ofMostNodes(before, published)
	confirmed := known.Nodes != 1 && formOf(before) == formOf(most[0])
	var devices catalog.Devices
	switch {
	case len(most) > 1 || !confirmed:
		devices = common(most)
	case known.Nodes > 1 && agree(before, most[0]):
		devices = before // one Node does not show which attributes differ from Node to Node
	default:
		devices = common(append(most, before))
	}
	now := v1alpha1.ObservedDevices{Devices: grouped(devices.Groups), DeviceCounters: devices.Counters, Nodes: 1}
	if len(most) > 1 || confirmed {
		now.Nodes = 2
	}
	return now
}
