// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"
	"sigs.k8s.io/karpenter/pkg/utils/resources"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
)

// decision is the offering with which a claim is launched.
type decision struct {
	instanceType *cloudprovider.InstanceType
	offering     *cloudprovider.Offering
	requirements scheduling.Requirements
}

// miss is why an instance type cannot serve a claim.
type miss struct {
	// stage is the check that failed: the higher, the closer.
	stage int
	// lack is the factor by which a resource falls short, within one stage: the lower, the closer.
	lack   float64
	reason error
}

func (m miss) closerThan(other miss) bool {
	return m.stage > other.stage || m.stage == other.stage && m.lack < other.lack
}

// cheapestOfferings returns the launchable offerings that fit the claim and that cost least, reserved capacity
// before any other. They are sorted by instance type, zone and capacity type, so that the same claim gets the same
// answer. It leaves out full offerings. The error names the instance type that comes closest, and the check that it fails.
func cheapestOfferings(claim *karpv1.NodeClaim, instanceTypes []*cloudprovider.InstanceType, full func(catalog.Key) bool) ([]*decision, error) {
	if len(instanceTypes) == 0 {
		return nil, errors.New("it offers no instance types")
	}
	requirements := requirementsOf(claim)
	var cheapest []*decision
	closest := miss{stage: -1}
	for _, instanceType := range instanceTypes {
		offerings, miss := fit(claim, requirements, instanceType, full)
		if len(offerings) == 0 && miss.closerThan(closest) {
			closest = miss
		}
		for _, offering := range offerings {
			order := -1
			if len(cheapest) > 0 {
				order = compareCost(offering, cheapest[0].offering)
			}
			if order < 0 {
				cheapest = nil
			}
			if order <= 0 {
				cheapest = append(cheapest, &decision{instanceType: instanceType, offering: offering, requirements: requirements})
			}
		}
	}
	if len(cheapest) == 0 {
		return nil, fmt.Errorf("none of %d instance types fits NodeClaim %s; the closest is %w", len(instanceTypes), claim.Name, closest.reason)
	}
	slices.SortFunc(cheapest, (*decision).compare)
	return cheapest, nil
}

// requirementsOf returns the claim's requirements. They include labels of the claim that
// name an offering: if core has persisted an earlier decision in part (it writes metadata
// and status one after the other), that decision is kept.
func requirementsOf(claim *karpv1.NodeClaim) scheduling.Requirements {
	requirements := scheduling.NewNodeSelectorRequirementsWithMinValues(claim.Spec.Requirements...)
	requirements.Add(scheduling.NewLabelRequirements(lo.PickByKeys(claim.Labels, []string{
		corev1.LabelInstanceTypeStable, corev1.LabelTopologyZone, karpv1.CapacityTypeLabelKey,
	})).Values()...)
	return requirements
}

// fit returns the offerings of an instance type with which a claim can be launched, or why there are none.
func fit(claim *karpv1.NodeClaim, requirements scheduling.Requirements, instanceType *cloudprovider.InstanceType, full func(catalog.Key) bool) (cloudprovider.Offerings, miss) {
	// Like core's own filter: a label that only the instance type has is not required
	// of the claim (karpenter: pkg/controllers/provisioning/scheduling/nodeclaim.go,
	// compatible).
	if err := instanceType.Requirements.Intersects(requirements); err != nil {
		if !requirements.Get(corev1.LabelInstanceTypeStable).Has(instanceType.Name) {
			return nil, miss{stage: 0, reason: fmt.Errorf("%s, which the claim does not allow: %w", instanceType.Name, err)}
		}
		return nil, miss{stage: 1, reason: fmt.Errorf("%s, which does not meet the requirements: %w", instanceType.Name, err)}
	}
	allocatable := instanceType.Allocatable()
	for _, name := range slices.Sorted(maps.Keys(claim.Spec.Resources.Requests)) {
		requested, available := claim.Spec.Resources.Requests[name], allocatable[name]
		if resources.Cmp(requested, available) > 0 {
			return nil, miss{stage: 2, lack: requested.AsApproximateFloat64() / available.AsApproximateFloat64(), reason: fmt.Errorf("%s, which has too little %s: requested %s, allocatable %s", instanceType.Name, name, requested.String(), available.String())}
		}
	}
	compatible := instanceType.Offerings.Compatible(requirements)
	if len(compatible) == 0 {
		return nil, miss{stage: 3, reason: fmt.Errorf("%s, which has no offering with zone %s and capacity type %s", instanceType.Name,
			requirements.Get(corev1.LabelTopologyZone), requirements.Get(karpv1.CapacityTypeLabelKey))}
	}
	launchable := compatible.Launchable()
	if len(launchable) == 0 {
		return nil, miss{stage: 4, reason: fmt.Errorf("%s, whose offerings are all unavailable", instanceType.Name)}
	}
	free := lo.Reject(launchable, func(o *cloudprovider.Offering, _ int) bool { return full(keyOf(instanceType, o)) })
	if len(free) == 0 {
		return nil, miss{stage: 5, reason: fmt.Errorf("%s, whose offerings have reached maxMachines or the count of their reservation, or have nothing left that capacityFrom counts", instanceType.Name)}
	}
	return free, miss{}
}

// compare orders decisions of the same cost.
func (d *decision) compare(other *decision) int {
	return cmp.Or(cmp.Compare(d.instanceType.Name, other.instanceType.Name), cmp.Compare(d.offering.Zone(), other.offering.Zone()), cmp.Compare(d.offering.CapacityType(), other.offering.CapacityType()))
}

// compareCost orders by price, with reserved capacity first, because it is already paid for.
func compareCost(a, b *cloudprovider.Offering) int {
	rank := func(o *cloudprovider.Offering) int {
		return lo.Ternary(o.CapacityType() == karpv1.CapacityTypeReserved, 0, 1)
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Price, b.Price))
}

func (d *decision) key() catalog.Key { return keyOf(d.instanceType, d.offering) }

func keyOf(instanceType *cloudprovider.InstanceType, offering *cloudprovider.Offering) catalog.Key {
	return catalog.Key{InstanceType: instanceType.Name, Zone: offering.Zone(), CapacityType: offering.CapacityType()}
}

// nodeClaim returns the claim that core persists. It has every label with only one
// possible value. Without one of them, each scheduling pass before the Node registers
// would assume that the Node lacks the label, and launch another claim.
func (d *decision) nodeClaim(claim *karpv1.NodeClaim) *karpv1.NodeClaim {
	labels := map[string]string{}
	for _, requirements := range []scheduling.Requirements{d.requirements, d.instanceType.Requirements, d.offering.Requirements} {
		for key, requirement := range requirements {
			if requirement.Len() == 1 { // that of NotIn counts what is left
				labels[key] = requirement.Any()
			}
		}
	}
	// An offering without a reservation does not get the label of the type's only one.
	for key, requirement := range d.offering.Requirements {
		if requirement.Operator() == corev1.NodeSelectorOpDoesNotExist {
			delete(labels, key)
		}
	}
	return &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name:        claim.Name,
			UID:         claim.UID,
			Labels:      labels,
			Annotations: maps.Clone(claim.Annotations),
		},
		Spec: *claim.Spec.DeepCopy(),
		Status: karpv1.NodeClaimStatus{
			ProviderID:  planner.ProvisionalID(claim.UID),
			Capacity:    withoutZeros(d.instanceType.Capacity),
			Allocatable: withoutZeros(d.instanceType.Allocatable()),
		},
	}
}

func withoutZeros(list corev1.ResourceList) corev1.ResourceList {
	result := corev1.ResourceList{}
	for name, quantity := range list {
		if !quantity.IsZero() {
			result[name] = quantity.DeepCopy()
		}
	}
	return result
}

// decide returns the decision about a claim. Decisions are made one after the other, so that several claims do not take the same
// host or the same turn.
func (c *CloudProvider) decide(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate, claim *karpv1.NodeClaim, instanceTypes []*cloudprovider.InstanceType) (*decision, error) {
	c.deciding.Lock()
	defer c.deciding.Unlock()
	limits, err := c.catalog.Limits(ctx, template)
	if err != nil {
		return nil, err
	}
	others, err := c.others(ctx, template, claim, limits)
	if err != nil {
		return nil, err
	}
	// The template's status also has which offerings are at their limit, but up to a second late, and a burst of claims takes
	// less time. The cache is late, too: if claims exceed a limit, the oldest keep the offering.
	full := func(catalog.Key) bool { return false }
	if !limits.None() {
		full = limits.Use(others).Full
	}
	cheapest, err := cheapestOfferings(claim, instanceTypes, full)
	if err != nil {
		return nil, cloudprovider.NewInsufficientCapacityError(fmt.Errorf("KarpenterMachineTemplate %s: %w", template.Name, err))
	}
	decision, err := c.takeTurns(ctx, template, claim, cheapest, others)
	if err != nil {
		return nil, err
	}
	if limits.Counted() || len(template.Spec.Spread) > 0 {
		launched := decision.nodeClaim(claim)
		launched.Labels = lo.Assign(claim.Labels, launched.Labels)
		launched.StatusConditions().SetTrue(karpv1.ConditionTypeLaunched)
		c.decided.SetDefault(string(claim.UID), launched)
	}
	return decision, nil
}

// others returns the other claims that the decision about a claim depends on: those that count toward a limit, and those over
// which spec.spread gives turns. A decision that the cache lacks is in place of its claim.
func (c *CloudProvider) others(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate, claim *karpv1.NodeClaim, limits catalog.Limits) ([]karpv1.NodeClaim, error) {
	if limits.None() && len(template.Spec.Spread) == 0 {
		return nil, nil
	}
	claims, err := catalog.ClaimsThatCount(ctx, c.clusters, template, limits)
	if err != nil {
		return nil, err
	}
	return lo.FilterMap(claims, func(other karpv1.NodeClaim, _ int) (karpv1.NodeClaim, bool) {
		if decided, known := c.decided.Get(string(other.UID)); known && !catalog.Launched(&other) && other.DeletionTimestamp.IsZero() {
			other = *decided.(*karpv1.NodeClaim)
		}
		return other, other.UID != claim.UID
	}), nil
}
