// SPDX-License-Identifier: Apache-2.0

package nodeclaim

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
)

func TestProviderID(t *testing.T) {
	launched := func(c *karpv1.NodeClaim) { c.StatusConditions().SetTrue(karpv1.ConditionTypeLaunched) }
	registered := func(c *karpv1.NodeClaim) { c.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered) }
	deleted := func(c *karpv1.NodeClaim) { c.DeletionTimestamp = new(metav1.Now()) }
	const provisional = "nodeclaim://1"
	for name, tc := range map[string]struct {
		has     string
		states  []func(*karpv1.NodeClaim)
		machine *clusterv1.Machine // that serves the claim
		want    string
	}{
		"before core has stored the launch":              {has: "", machine: &clusterv1.Machine{}, want: ""},
		"without a Machine":                              {has: provisional, states: []func(*karpv1.NodeClaim){launched}, want: provisional},
		"with a Machine that has none yet":               {has: provisional, states: []func(*karpv1.NodeClaim){launched}, machine: &clusterv1.Machine{}, want: provisional},
		"with a Machine that has one":                    {has: provisional, states: []func(*karpv1.NodeClaim){launched}, machine: &clusterv1.Machine{Spec: clusterv1.MachineSpec{ProviderID: "real://m"}}, want: "real://m"},
		"core put the provisional one back":              {has: provisional, states: []func(*karpv1.NodeClaim){launched, registered}, machine: &clusterv1.Machine{Spec: clusterv1.MachineSpec{ProviderID: "real://m"}}, want: "real://m"},
		"its Machine was deleted before its Node joined": {has: "real://m", states: []func(*karpv1.NodeClaim){launched}, want: provisional},
		"its Machine was deleted with its Node":          {has: "real://m", states: []func(*karpv1.NodeClaim){launched, registered}, want: "real://m"},
		"it is being deleted with its Machine":           {has: "real://m", states: []func(*karpv1.NodeClaim){launched, deleted}, want: "real://m"},
		"it is being deleted with a late ID":             {has: provisional, states: []func(*karpv1.NodeClaim){launched, deleted}, machine: &clusterv1.Machine{Spec: clusterv1.MachineSpec{ProviderID: "real://m"}}, want: provisional},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "1"}, Status: karpv1.NodeClaimStatus{ProviderID: tc.has}}
			for _, set := range tc.states {
				set(claim)
			}
			snap := &snapshot.Snapshot{Machines: map[string]*clusterv1.Machine{"m": tc.machine}, Plan: planner.Plan{Served: map[types.UID]string{}}}
			if tc.machine != nil {
				snap.Plan.Served["1"] = "m"
			}
			if got := providerID(claim, snap); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
