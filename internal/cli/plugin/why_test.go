// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// Each rule for templates finds its cause.
func TestWhyTemplate(t *testing.T) {
	general := func(do func(*v1alpha1.KarpenterMachineTemplate)) edit { return named("general", do) }
	// available leaves no offering unavailable, and no condition False.
	available := general(func(t *v1alpha1.KarpenterMachineTemplate) {
		t.Status.UnavailableOfferings, t.Status.Conditions = nil, t.Status.Conditions[:1]
	})
	with := func(kind, reason, message string) edit {
		return general(func(t *v1alpha1.KarpenterMachineTemplate) {
			t.Status.Conditions = append(t.Status.Conditions, condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message})
		})
	}
	for name, tc := range map[string]struct {
		ask         string
		changes     []edit
		rule, cause string
	}{
		"a reference does not exist": {ask: "gpu", rule: "TemplateBlocked", cause: "KarpenterMachineTemplate gpu is not Ready: InfrastructureReady: AWSMachineTemplate clusters/gpu does not exist"},
		"it is being deleted": {ask: "general", rule: "TemplateEnds", cause: "3 NodeClaims use it", changes: []edit{
			with(v1alpha1.ConditionDeletable, v1alpha1.ReasonNodeClaimsRemain, "3 NodeClaims use it"),
			general(func(t *v1alpha1.KarpenterMachineTemplate) {
				t.DeletionTimestamp, t.Finalizers = &metav1.Time{Time: fixture.Noon}, []string{"karpenter.cluster.x-k8s.io/termination"}
			}),
		}},
		"it was never examined": {ask: "general", rule: "TemplateNotExamined", cause: "has not examined KarpenterMachineTemplate general", changes: []edit{
			general(func(t *v1alpha1.KarpenterMachineTemplate) { t.Status = v1alpha1.KarpenterMachineTemplateStatus{} }),
		}},
		"its limit is reached": {ask: "general", rule: "AllUnavailable", cause: "its maxMachines is 5", changes: []edit{
			general(func(t *v1alpha1.KarpenterMachineTemplate) { t.Spec.MaxMachines = new(int32(5)) }),
		}},
		"an offering is invalid": {ask: "general", rule: "OfferingsInvalid", cause: "OfferingsValid=ZonesUnknown: the Cluster has no failure domain us-east-1c", changes: []edit{
			with(v1alpha1.ConditionOfferingsValid, v1alpha1.ReasonZonesUnknown, "the Cluster has no failure domain us-east-1c"),
		}},
		"an offering has failed": {ask: "general", rule: "SomeUnavailable", cause: "1 of 5 offerings of KarpenterMachineTemplate general cannot be chosen now: m5.large"},
		"Machines wait": {ask: "general", rule: "TemplateWarns", cause: "MachinesProgressing=Blocked: NodeClaim general-blocked waits", changes: []edit{
			general(func(t *v1alpha1.KarpenterMachineTemplate) { t.Status.UnavailableOfferings = nil }),
		}},
		"nothing uses it": {ask: "general", rule: "TemplateUnused", cause: "no NodePool uses KarpenterMachineTemplate general", changes: []edit{
			available, without[*karpv1.NodePool]("general"), without[*karpv1.NodePool]("small"),
		}},
		"nothing is wrong": {ask: "general", cause: "nothing blocks Template general", changes: []edit{available}},
	} {
		t.Run(name, func(t *testing.T) { expectCause(t, "template "+tc.ask, tc.rule, tc.cause, tc.changes...) })
	}
}
