// SPDX-License-Identifier: Apache-2.0

// Package cost adds up what the Nodes of NodePools cost. Prices are those that Karpenter compares, from catalogs with their
// adjustments and from discovered objects. A claim costs from its launch, whether or not its Node has joined.
package cost

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/utils/resources"

	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/view"
)

// HoursPerMonth are the hours for which clouds bill in a month.
const HoursPerMonth = 730

// Row is the cost of the NodeClaims with one NodePool, template, zone and capacity type.
type Row struct {
	NodePool     string `json:"nodePool,omitempty"`
	Template     string `json:"template,omitempty"`
	Zone         string `json:"zone,omitempty"`
	CapacityType string `json:"capacityType,omitempty"`
	NodeClaims   int    `json:"nodeClaims"`
	// Unpriced is the number of NodeClaims whose price is not known. They are not in any sum.
	Unpriced int `json:"unpriced,omitempty"`
	// Currency is that of all prices; empty if the catalogs do not say it. If they have several, it names all of them.
	Currency string `json:"currency,omitempty"`
	// PerHour is what is paid for the NodeClaims for an hour.
	PerHour float64 `json:"perHour"`
	// ListPerHour is what they would cost without adjustments of prices.
	ListPerHour float64 `json:"listPerHour"`
	// OnDemandPerHour is what the same instance types in the same zones cost on demand. What is not offered on demand counts with its own price.
	OnDemandPerHour float64 `json:"onDemandPerHour"`
	// UnusedPerHour is the part of PerHour for what no Pod has requested. Of CPU and memory, the one that is used most counts.
	// Nodes that have not joined are not part of it.
	UnusedPerHour float64 `json:"unusedPerHour"`
}

// add adds the cost of another row.
func (r *Row) add(other Row) {
	r.NodeClaims += other.NodeClaims
	r.Unpriced += other.Unpriced
	r.Currency = view.Currencies(append(strings.Split(r.Currency, view.CurrencySeparator), other.Currency)...)
	r.PerHour = view.Sum(r.PerHour, other.PerHour)
	r.ListPerHour = view.Sum(r.ListPerHour, other.ListPerHour)
	r.OnDemandPerHour = view.Sum(r.OnDemandPerHour, other.OnDemandPerHour)
	r.UnusedPerHour = view.Sum(r.UnusedPerHour, other.UnusedPerHour)
}

// Of returns the cost of a NodePool, or of all if the name is empty, sorted, and the sum. Pods are by the name of their Node.
func Of(ctx context.Context, v *view.View, pods map[string][]corev1.Pod, nodePool string) (rows []Row, total Row) {
	groups := map[Row]*Row{}
	for i := range v.Claims {
		claim := &v.Claims[i]
		if !catalog.Launched(claim) || nodePool != "" && claim.Labels[karpv1.NodePoolLabelKey] != nodePool {
			continue
		}
		key := catalog.KeyOf(claim)
		group := Row{NodePool: claim.Labels[karpv1.NodePoolLabelKey], Template: claim.Spec.NodeClassRef.Name, Zone: key.Zone, CapacityType: key.CapacityType}
		if groups[group] == nil {
			groups[group] = lo.ToPtr(group)
		}
		one := of(ctx, v, claim, pods)
		groups[group].add(one)
		total.add(one)
	}
	rows = lo.Map(lo.Values(groups), func(r *Row, _ int) Row { return *r })
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.NodePool, b.NodePool), cmp.Compare(a.Template, b.Template), cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.CapacityType, b.CapacityType))
	})
	return rows, total
}

// of returns the cost of one NodeClaim.
func of(ctx context.Context, v *view.View, claim *karpv1.NodeClaim, pods map[string][]corev1.Pod) Row {
	key := catalog.KeyOf(claim)
	offering, known := v.Offering(ctx, claim.Spec.NodeClassRef.Name, key)
	if !known {
		return Row{NodeClaims: 1, Unpriced: 1}
	}
	row := Row{NodeClaims: 1, Currency: offering.Currency, PerHour: offering.Price, ListPerHour: offering.ListPrice, OnDemandPerHour: offering.Price}
	key.CapacityType = karpv1.CapacityTypeOnDemand
	if onDemand, offered := v.Offering(ctx, claim.Spec.NodeClassRef.Name, key); offered {
		row.OnDemandPerHour = onDemand.Price
	}
	if node := v.NodeOf(claim, v.MachineOf(claim)); node != nil {
		row.UnusedPerHour = offering.Price * unused(node, pods[node.Name])
	}
	return row
}

// unused returns which part of a Node no Pod has requested. Of CPU and memory, the one that is used most counts.
func unused(node *corev1.Node, pods []corev1.Pod) float64 {
	running := lo.FilterMap(pods, func(pod corev1.Pod, i int) (*corev1.Pod, bool) {
		return &pods[i], pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
	})
	requests := resources.RequestsForPods(running...)
	used := 0.0
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		requested, has := requests[name], node.Status.Allocatable[name]
		if !has.IsZero() {
			used = max(used, requested.AsApproximateFloat64()/has.AsApproximateFloat64())
		}
	}
	return max(0, 1-used)
}
