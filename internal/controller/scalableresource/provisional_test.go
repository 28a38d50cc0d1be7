// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
)

func TestNeedsProvisionalID(t *testing.T) {
	launched := func(c *karpv1.NodeClaim) { c.StatusConditions().SetTrue(karpv1.ConditionTypeLaunched) }
	registered := func(c *karpv1.NodeClaim) { c.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered) }
	deleted := func(c *karpv1.NodeClaim) { c.DeletionTimestamp = new(metav1.Now()) }
	const provisional = "nodeclaim://1"
	for name, tc := range map[string]struct {
		has     string
		states  []func(*karpv1.NodeClaim)
		machine *clusterv1.Machine // that is linked to the claim
		served  bool               // the Machine serves the claim
		want    bool
	}{
		"before core has stored the launch":               {has: ""},
		"with it":                                         {has: provisional, states: []func(*karpv1.NodeClaim){launched}},
		"its Machine has no provider ID yet":              {has: "real://first", states: []func(*karpv1.NodeClaim){launched}, machine: &clusterv1.Machine{}, served: true, want: true},
		"its Machine has one":                             {has: "real://m", states: []func(*karpv1.NodeClaim){launched}, machine: &clusterv1.Machine{Spec: clusterv1.MachineSpec{ProviderID: "real://m"}}, served: true},
		"its Machine was deleted before its Node joined":  {has: "real://m", states: []func(*karpv1.NodeClaim){launched}, want: true},
		"its Machine is leaving before its Node joined":   {has: "real://m", states: []func(*karpv1.NodeClaim){launched}, machine: &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: new(metav1.Now())}}, want: true},
		"its Machine has lost its instance, and is there": {has: "real://m", states: []func(*karpv1.NodeClaim){launched}, machine: &clusterv1.Machine{Spec: clusterv1.MachineSpec{ProviderID: "real://m"}}},
		"its Machine was deleted with its Node":           {has: "real://m", states: []func(*karpv1.NodeClaim){launched, registered}},
		"registered, and its Machine has lost its ID":     {has: "real://m", states: []func(*karpv1.NodeClaim){launched, registered}, machine: &clusterv1.Machine{}, served: true},
		"it is being deleted":                             {has: "real://m", states: []func(*karpv1.NodeClaim){launched, deleted}},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "1"}, Status: karpv1.NodeClaimStatus{ProviderID: tc.has}}
			for _, set := range tc.states {
				set(claim)
			}
			snap := &decided{Snapshot: &snapshot.Snapshot{Machines: map[string]*clusterv1.Machine{}}, Plan: planner.Plan{Served: map[types.UID]string{}}}
			if tc.machine != nil {
				tc.machine.Name, tc.machine.Labels = "m", map[string]string{v1alpha1.NodeClaimUIDLabel: "1"}
				snap.Machines["m"] = tc.machine
			}
			if tc.served {
				snap.Plan.Served["1"] = "m"
			}
			if got := needsProvisionalID(claim, snap); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
