// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// A claim exists for core by the ID that it has kept, when a provider has given its Machine another one:
// core would remove a claim that List does not return, and a Node that Get does not find, without a drain.
func TestKeptProviderID(t *testing.T) {
	for name, tc := range map[string]struct {
		claim func(*karpv1.NodeClaim)
		node  string // the Node of the Machine, which has the ID sim://new
		list  string
		found bool // with the ID sim://old
	}{
		"its Machine has got another ID":                                       {node: "node", list: "sim://old", found: true},
		"it has the ID of its Machine":                                         {node: "node", claim: func(c *karpv1.NodeClaim) { c.Status.ProviderID = "sim://new" }, list: "sim://new"},
		"it has its provisional ID":                                            {node: "node", claim: func(c *karpv1.NodeClaim) { c.Status.ProviderID = planner.ProvisionalID(c.UID) }, list: "sim://new"},
		"it has no ID":                                                         {node: "node", claim: func(c *karpv1.NodeClaim) { c.Status.ProviderID = "" }, list: "sim://new"},
		"its Node is not registered yet":                                       {node: "node", claim: func(c *karpv1.NodeClaim) { c.Status.NodeName = "" }, list: "sim://new"},
		"it has lost its Machine, and a second one is linked":                  {list: "sim://new"},
		"it has lost its Machine, and a second one that is linked, has a Node": {node: "second", list: "sim://new"},
	} {
		t.Run(name, func(t *testing.T) {
			claim := launched("claim", "small")
			claim.Status.ProviderID, claim.Status.NodeName = "sim://old", "node"
			if tc.claim != nil {
				tc.claim(claim)
			}
			machine := fixture.OfMachineDeployment(fixture.Machine(time.Hour))
			machine.Labels[v1alpha1.NodeClaimUIDLabel] = string(claim.UID)
			machine.Spec.ProviderID, machine.Status.NodeRef.Name = "sim://new", tc.node
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name}}
			provider, _ := newDrainProvider(claim, machine, cluster)

			claims, err := provider.List(t.Context())
			if err != nil || len(claims) != 1 || claims[0].Status.ProviderID != tc.list {
				t.Errorf("List: got %+v and error %v, want ID %s", claims, err, tc.list)
			}
			if _, err := provider.Get(t.Context(), "sim://new"); err != nil {
				t.Errorf("Get with the ID of the Machine: %v", err)
			}
			switch found, err := provider.Get(t.Context(), "sim://old"); {
			case tc.found && (err != nil || found.UID != claim.UID):
				t.Errorf("Get with the ID of the claim: got %+v and error %v", found, err)
			case !tc.found && !cloudprovider.IsNodeClaimNotFoundError(err):
				t.Errorf("Get with the former ID: got error %v, want that nothing has it", err)
			}
		})
	}
}
