// SPDX-License-Identifier: Apache-2.0

// Package offers lists what a template offers: what can be bought now, at which price, and why everything else cannot. For a Pod,
// it also decides which offerings can run it, with the same functions as Karpenter's scheduler. It does not know what depends on
// other Pods: topology spread, affinity between Pods, and volumes.
package offers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"
	"sigs.k8s.io/karpenter/pkg/utils/resources"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/view"
)

// Offer is one offering of a template.
type Offer struct {
	InstanceType string `json:"instanceType"`
	Zone         string `json:"zone,omitempty"`
	CapacityType string `json:"capacityType"`
	// PricePerHour is what is paid. ListPricePerHour is the price before adjustments.
	PricePerHour     float64 `json:"pricePerHour"`
	ListPricePerHour float64 `json:"listPricePerHour"`
	// ComparedPricePerHour is what Karpenter compares instead of the price, if the template has spec.spread for the capacity
	// type: offerings with the same one take turns. It is nil if Karpenter compares the price.
	ComparedPricePerHour *float64 `json:"comparedPricePerHour,omitempty"`
	// Currency is that of both prices; empty if the catalog does not say it.
	Currency string            `json:"currency,omitempty"`
	CPU      resource.Quantity `json:"cpu"`
	Memory   resource.Quantity `json:"memory"`
	// Left is how many more NodeClaims its limit allows; nil if it has no limit.
	Left *int32 `json:"left,omitempty"`
	// Unavailable is why Karpenter cannot choose it now; zero if it can.
	Unavailable Reason `json:"unavailable,omitzero"`
	// Unfit is why the Pod or NodePool cannot use it; zero if it can.
	Unfit Reason `json:"unfit,omitzero"`
}

// Reason is why an offering cannot be used.
type Reason struct {
	Kind    Kind   `json:"kind"`
	Message string `json:"message"`
}

// String returns the message.
func (r Reason) String() string { return r.Message }

// Kind is the kind of a Reason.
type Kind string

// These are why an offering is unavailable.
const (
	// Failed is that a launch has failed, or the instance was interrupted.
	Failed Kind = "Failed"
	// Invalid is that what would be generated cannot be created.
	Invalid Kind = "Invalid"
	// Full is that a limit is reached.
	Full Kind = "Full"
	// Paused is that its MachineDeployment or MachinePool is paused.
	Paused Kind = "Paused"
	// Tainted is that its Nodes join with taints that the NodePool lacks.
	Tainted Kind = "Tainted"
)

// These are why an offering does not fit.
const (
	// Excluded is that labels or requirements exclude it.
	Excluded Kind = "Excluded"
	// TooSmall is that it has too little of a resource.
	TooSmall Kind = "TooSmall"
)

// Key returns the instance type, zone and capacity type.
func (o *Offer) Key() catalog.Key {
	return catalog.Key{InstanceType: o.InstanceType, Zone: o.Zone, CapacityType: o.CapacityType}
}

// Usable reports whether Karpenter can choose the offering now, and the Pod can run on it.
func (o *Offer) Usable() bool { return o.Unavailable == Reason{} && o.Unfit == Reason{} }

// Demand is for what offerings are listed. The zero value is for nothing in particular.
type Demand struct {
	// NodePool limits the offerings to what it allows; nil for none.
	NodePool *karpv1.NodePool
	// Pod must be able to run; nil for none.
	Pod *corev1.Pod
	// Daemons are the DaemonSets whose Pods run beside it.
	Daemons []corev1.Pod
}

// List returns the offerings of a template: usable ones first, then by price.
func List(ctx context.Context, v *view.View, template *v1alpha1.KarpenterMachineTemplate, demand Demand) ([]Offer, error) {
	instanceTypes, err := v.InstanceTypes(ctx, template, demand.NodePool)
	if err != nil {
		return nil, fmt.Errorf("instance types of %s %s: %w", v1alpha1.Kind, template.Name, err)
	}
	fit := demand.fit()
	var all []Offer
	for _, instanceType := range instanceTypes {
		for _, offering := range instanceType.Offerings {
			key := catalog.Key{InstanceType: instanceType.Name, Zone: offering.Zone(), CapacityType: offering.CapacityType()}
			known, offered := v.Offering(ctx, template.Name, key)
			if !offered {
				continue // only NodeClaims still have it
			}
			offer := Offer{
				InstanceType: key.InstanceType, Zone: key.Zone, CapacityType: key.CapacityType,
				PricePerHour: known.Price, ListPricePerHour: known.ListPrice, Currency: known.Currency,
				CPU: instanceType.Capacity[corev1.ResourceCPU], Memory: instanceType.Capacity[corev1.ResourceMemory],
				Left: left(template, key, known), Unfit: fit(instanceType, offering),
			}
			if template.SpreadOf(key.CapacityType) != nil {
				offer.ComparedPricePerHour = lo.ToPtr(offering.Price)
			}
			if !offering.Launchable() {
				offer.Unavailable = unavailable(template, key, known, v.Now)
			}
			all = append(all, offer)
		}
	}
	slices.SortStableFunc(all, func(a, b Offer) int {
		return cmp.Or(order(a.Usable(), b.Usable()), cmp.Compare(a.PricePerHour, b.PricePerHour), cmp.Compare(a.Key().String(), b.Key().String()))
	})
	return all, nil
}

// order puts true before false.
func order(a, b bool) int {
	return cmp.Compare(lo.Ternary(a, 0, 1), lo.Ternary(b, 0, 1))
}

// left returns how many more NodeClaims the limits of the template and of an offering allow; nil if there is no limit.
func left(template *v1alpha1.KarpenterMachineTemplate, key catalog.Key, offering catalog.Offering) *int32 {
	var limits []int32
	if most := template.Spec.MaxMachines; most != nil {
		limits = append(limits, max(0, *most-template.Status.NodeClaims))
	}
	used, found := lo.Find(template.Status.LimitedOfferings, func(o v1alpha1.LimitedOffering) bool {
		return catalog.KeyOfLimited(o) == key
	})
	switch {
	case found:
		limits = append(limits, max(0, used.Limit-used.NodeClaims))
	case offering.Reservation != nil:
		limits = append(limits, offering.Reservation.Count)
	case offering.MaxMachines != nil:
		limits = append(limits, *offering.MaxMachines)
	}
	if len(limits) == 0 {
		return nil
	}
	return lo.ToPtr(slices.Min(limits))
}

// unavailable returns why Karpenter cannot choose an offering now, as far as the template shows it.
func unavailable(template *v1alpha1.KarpenterMachineTemplate, key catalog.Key, offering catalog.Offering, now time.Time) Reason {
	for _, o := range catalog.Unavailable(template.Status.UnavailableOfferings, now) {
		if catalog.KeyOfMark(o) == key {
			return Reason{Failed, strings.TrimSuffix(fmt.Sprintf("%s until %s: %s", o.Reason, o.Until.UTC().Format("15:04:05 MST"), o.Message), ": ")}
		}
	}
	if limit := full(template, key); limit != "" {
		return Reason{Full, limit}
	}
	if name := paused(template, key, offering); name != "" {
		return Reason{Paused, name + " is paused"}
	}
	if invalid, found := invalid(template, key); found {
		return Reason{Invalid, fmt.Sprintf("%s: %s", invalid.Reason, invalid.Message)}
	}
	taints := lo.Map(offering.Taints, func(t catalog.Taint, _ int) string { return t.ToString() })
	return Reason{Tainted, "its Nodes join with taints that the NodePool lacks: " + strings.Join(taints, ", ")}
}

// full returns which limit of an offering is reached; empty if none is.
func full(template *v1alpha1.KarpenterMachineTemplate, key catalog.Key) string {
	if most := template.Spec.MaxMachines; most != nil && template.Status.NodeClaims >= *most {
		return fmt.Sprintf("the template has %d NodeClaims, and its maxMachines is %d", template.Status.NodeClaims, *most)
	}
	for _, o := range template.Status.LimitedOfferings {
		if catalog.KeyOfLimited(o) == key && o.NodeClaims >= o.Limit {
			return cmp.Or(o.Message, fmt.Sprintf("%d of %d NodeClaims exist", o.NodeClaims, o.Limit))
		}
	}
	return ""
}

// paused returns the MachineDeployment or MachinePool of an offering if that is paused; empty if it is not.
func paused(template *v1alpha1.KarpenterMachineTemplate, key catalog.Key, offering catalog.Offering) string {
	for _, r := range template.Status.ScalableResources {
		own := catalog.Key{InstanceType: r.InstanceType, Zone: r.Zone, CapacityType: r.CapacityType} == key
		if r.Paused && (own || r.Name == offering.MachineDeployment) {
			return fmt.Sprintf("%s %s", r.Kind, r.Name)
		}
	}
	if offering.Paused {
		return fmt.Sprintf("%s %s", v1alpha1.ScalableResourceKindMachineDeployment, offering.MachineDeployment)
	}
	return ""
}

// invalid returns the group of invalid offerings that has an offering. The status of a template has only examples, so of an
// offering without taints that is none of them, it is the first group.
func invalid(template *v1alpha1.KarpenterMachineTemplate, key catalog.Key) (v1alpha1.InvalidOfferings, bool) {
	groups := template.Status.InvalidOfferings
	if group, found := lo.Find(groups, func(i v1alpha1.InvalidOfferings) bool { return lo.Contains(i.Examples, key.String()) }); found {
		return group, true
	}
	return lo.FirstOrEmpty(groups), len(groups) > 0
}

// fit returns a function that decides why an offering cannot run the Pod on a Node of the NodePool.
func (d Demand) fit() func(*cloudprovider.InstanceType, *cloudprovider.Offering) Reason {
	requirements := d.Requirements()
	requests := corev1.ResourceList{}
	if d.Pod != nil {
		requirements.Add(scheduling.NewStrictPodRequirements(d.Pod).Values()...)
		requests = resources.RequestsForPods(append(lo.ToSlicePtr(d.Daemons), d.Pod)...)
	}
	return func(instanceType *cloudprovider.InstanceType, offering *cloudprovider.Offering) Reason {
		if err := instanceType.Requirements.Intersects(requirements); err != nil {
			return Reason{Excluded, view.OneLine(err.Error())}
		}
		if err := requirements.Compatible(offering.Requirements, scheduling.AllowUndefinedWellKnownLabels); err != nil {
			return Reason{Excluded, view.OneLine(err.Error())}
		}
		if lacking := lacking(requests, instanceType.Allocatable()); lacking != "" {
			return Reason{TooSmall, lacking}
		}
		return Reason{}
	}
}

// Requirements returns the requirements of the NodePool; none without one.
func (d Demand) Requirements() scheduling.Requirements {
	if d.NodePool == nil {
		return scheduling.NewRequirements()
	}
	return OfNodePool(d.NodePool)
}

// OfNodePool returns the requirements of a NodePool and of the labels that it gives to Nodes, as Karpenter's scheduler has them
// (karpenter: pkg/controllers/provisioning/scheduling/nodeclaimtemplate.go, NewNodeClaimTemplate).
func OfNodePool(pool *karpv1.NodePool) scheduling.Requirements {
	requirements := scheduling.NewNodeSelectorRequirementsWithMinValues(pool.Spec.Template.Spec.Requirements...)
	class := pool.Spec.Template.Spec.NodeClassRef
	requirements.Add(scheduling.NewLabelRequirements(lo.Assign(pool.Spec.Template.Labels, map[string]string{
		karpv1.NodePoolLabelKey:                     pool.Name,
		karpv1.NodeClassLabelKey(class.GroupKind()): class.Name,
	})).Values()...)
	return requirements
}

// lacking returns which resources are less than requested; empty if none is.
func lacking(requests, allocatable corev1.ResourceList) string {
	if resources.Fits(requests, allocatable) {
		return ""
	}
	names := lo.Keys(requests)
	slices.Sort(names)
	return strings.Join(lo.FilterMap(names, func(name corev1.ResourceName, _ int) (string, bool) {
		want, has := requests[name], allocatable[name]
		return fmt.Sprintf("%s: %s is requested, and Pods can have %s", name, want.String(), has.String()), want.Cmp(has) > 0
	}), "; ")
}
