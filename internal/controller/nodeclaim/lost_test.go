// SPDX-License-Identifier: Apache-2.0

package nodeclaim

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
	"github.com/karpenter-capi/karpenter-capi/test/fixture"
)

// A registered claim is deleted with its Machine, but not when clusterctl deletes the copy of the
// Machine that it has moved.
func TestLost(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*karpv1.NodeClaim, *clusterv1.Machine)
		want   string
	}{
		"its Machine exists": {},
		"its Machine is being deleted": {change: func(_ *karpv1.NodeClaim, m *clusterv1.Machine) {
			m.DeletionTimestamp = new(metav1.NewTime(fixture.Noon))
		}, want: "Machine m is being deleted"},
		"its Machine was moved": {change: func(_ *karpv1.NodeClaim, m *clusterv1.Machine) {
			m.DeletionTimestamp, m.Annotations = new(metav1.NewTime(fixture.Noon)), map[string]string{clusterctlv1.DeleteForMoveAnnotation: ""}
		}},
		"its second Machine is being deleted": {change: func(_ *karpv1.NodeClaim, m *clusterv1.Machine) {
			m.DeletionTimestamp, m.Spec.ProviderID = new(metav1.NewTime(fixture.Noon)), "real://other"
		}},
		"its Node was removed": {change: func(_ *karpv1.NodeClaim, m *clusterv1.Machine) {
			fixture.WithCondition(m, clusterv1.MachineNodeHealthyCondition, metav1.ConditionFalse, clusterv1.MachineNodeDeletedReason, "", fixture.Noon)
		}, want: "the Node of Machine m has been removed"},
		"it is being deleted": {change: func(c *karpv1.NodeClaim, m *clusterv1.Machine) {
			c.DeletionTimestamp, m.DeletionTimestamp = new(metav1.NewTime(fixture.Noon)), new(metav1.NewTime(fixture.Noon))
		}},
		"it is not registered": {change: func(c *karpv1.NodeClaim, m *clusterv1.Machine) {
			c.StatusConditions().SetUnknown(karpv1.ConditionTypeRegistered)
			m.DeletionTimestamp = new(metav1.NewTime(fixture.Noon))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			claim, machine := fixture.Claim(time.Hour), fixture.Machine(time.Hour)
			claim.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered)
			claim.Status.ProviderID, machine.Spec.ProviderID = "real://m", "real://m"
			machine.Labels = map[string]string{v1alpha1.NodeClaimUIDLabel: string(claim.UID)}
			if tc.change != nil {
				tc.change(claim, machine)
			}
			got := lost(claim, &snapshot.Snapshot{Claims: []karpv1.NodeClaim{*claim}, Machines: map[string]*clusterv1.Machine{"m": machine}})
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
