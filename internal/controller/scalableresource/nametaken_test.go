// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"strings"
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
)

// A claim never gets a Machine of a resource that was generated from something else, although it names the
// resource: the hashes in two names can be equal.
func TestAClaimGetsNoMachineOfAnotherOffering(t *testing.T) {
	hash := func(value string) func(*karpv1.NodeClaim) {
		return func(c *karpv1.NodeClaim) { c.Annotations[v1alpha1.TemplateHashAnnotation] = value }
	}
	alone := func(c *karpv1.NodeClaim) { delete(c.Labels, karpv1.NodePoolLabelKey) }
	for name, tc := range map[string]struct {
		claim            *karpv1.NodeClaim
		linked, replaced bool
	}{
		"its own":                         {claim: launched("c", hash("a")), linked: true},
		"no hash is known":                {claim: launched("c"), linked: true},
		"another":                         {claim: launched("c", hash("b")), replaced: true},
		"another, and it has no NodePool": {claim: launched("c", hash("b"), alone), replaced: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(tc.claim, machine("spare"))
			resource := &clusterv1.MachineDeployment{}
			if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: "fleet", Name: resourceName}, resource); err != nil {
				t.Fatal(err)
			}
			resource.Labels[v1alpha1.TemplateHashLabel] = "a"
			if err := w.api.Update(t.Context(), resource); err != nil {
				t.Fatal(err)
			}
			r := w.newProcess()
			for range 2 {
				if err := reconcileOnce(t, r); err != nil {
					t.Fatal(err)
				}
			}
			if linked := lifecycle.ClaimUID(w.machine(t, "spare")) != ""; linked != tc.linked {
				t.Errorf("the Machine is linked: %t, want %t", linked, tc.linked)
			}
			claim := w.claim(t, "c")
			if replaced := !claim.DeletionTimestamp.IsZero(); replaced != tc.replaced {
				t.Errorf("the claim is being deleted: %t, want %t", replaced, tc.replaced)
			}
			if condition := claim.StatusConditions().Get(v1alpha1.ConditionMachineAvailable); !tc.linked && (!condition.IsFalse() || condition.Reason != v1alpha1.ReasonNameTaken || !strings.Contains(condition.Message, resourceName)) {
				t.Errorf("got the condition %+v", condition)
			}
			if marks := w.marks(t); len(marks) > 0 {
				t.Errorf("got the marks %+v: the offering has not failed", marks)
			}
		})
	}
}
