// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// The rejected object is a MachineDeployment here; the same code creates a MachinePool.
var _ = Describe("A scalable resource that the API server accepts only as a dry run", func() {
	It("is created as soon as it is accepted, unless launchTimeoutSeconds ends before", func(ctx SpecContext) {
		const refusal = "no more MachineDeployments for this team"
		inTime, late := machineDeployments.newFixture("refusedcreate").delays(0, 0, never), machineDeployments.newFixture("refusedlate").delays(0, 0, never)
		late.template.Spec.LaunchTimeoutSeconds = new(int32(6))
		allow := inTime.refuseCreating(ctx, "refused", refusal)
		for _, f := range []*fixture{inTime, late} {
			f.createReady(ctx)
			Expect(f.template.Status.InvalidOfferings).To(BeEmpty(), "rejected dry runs")
		}

		By("launching claims, with and without a NodePool")
		pooled := late.launch(ctx, 2)
		waiting := []*karpv1.NodeClaim{inTime.launchOne(ctx), inTime.launchAlone(ctx)}
		for _, claim := range waiting {
			Eventually(ctx, func(g Gomega) {
				g.Expect(env.get(ctx, claim)).To(Succeed())
				condition := claim.StatusConditions().Get(v1alpha1.ConditionMachineAvailable)
				g.Expect(condition).NotTo(BeNil())
				g.Expect(condition.Reason).To(Equal(v1alpha1.ReasonRejected))
				g.Expect(condition.Message).To(ContainSubstring(refusal))
			}).Should(Succeed())
		}
		Eventually(ctx, func() []string { return env.events(ctx, "NodeClaim", inTime.name, "MachineDeploymentNotCreated") }).
			Should(ContainElement(ContainSubstring(refusal)))

		By("waiting until launchTimeoutSeconds of the other template ends")
		for _, claim := range pooled {
			env.waitGone(ctx, claim)
		}
		Expect(late.failures(ctx, instanceType)).To(Equal(map[string]int32{"LaunchTimeout": 1}))
		Expect(env.events(ctx, "NodeClaim", late.name, "LaunchTimeout")).To(ContainElement(ContainSubstring(refusal)))
		Expect(late.resources(ctx)).To(BeEmpty())

		By("accepting what was rejected")
		Expect(inTime.resources(ctx)).To(BeEmpty())
		allow(ctx)
		for _, claim := range waiting {
			env.waitMachine(ctx, claim)
		}
		Expect(inTime.failures(ctx, instanceType)).To(BeEmpty(), "marks of an offering that did not fail")
	})
})

// refuseCreating makes the API server reject MachineDeployments whose names begin with a prefix,
// except in dry runs, until allow is called or the spec ends.
func (f *fixture) refuseCreating(ctx context.Context, prefix, message string) (allow func(context.Context)) {
	GinkgoHelper()
	// The policy rejects this name in dry runs too, so that the test can wait for the policy without an object that exists.
	probe := prefix + "-probe"
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: prefix},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{clusterv1.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"machinedeployments"}},
			}}}},
			Validations: []admissionregistrationv1.Validation{{
				Expression: fmt.Sprintf("has(request.dryRun) && request.dryRun && object.metadata.name != %q || !object.metadata.name.startsWith(%q)", probe, prefix), Message: message,
			}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: prefix},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: prefix, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	allow = func(ctx context.Context) {
		for _, object := range []client.Object{binding, policy} {
			Expect(client.IgnoreNotFound(env.client.Delete(ctx, object))).To(Succeed())
		}
	}
	DeferCleanup(func(ctx SpecContext) { allow(ctx) })
	for _, object := range []client.Object{policy, binding} {
		Expect(env.client.Create(ctx, object)).To(Succeed())
	}
	Eventually(ctx, func() error {
		return env.client.Create(ctx, f.ownMachineDeployment(probe), client.DryRunAll)
	}).Should(MatchError(ContainSubstring(message)), "the policy is in effect")
	return allow
}
