// SPDX-License-Identifier: Apache-2.0

package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

var _ = forEachKind("Deleting a template", func(k kind) {
	It("waits for its claims, launches nothing, and leaves only what users have created", func(ctx SpecContext) {
		f := k.newFixture("removed").createReady(ctx)
		Expect(f.template.Finalizers).To(ContainElement(v1alpha1.TerminationFinalizer), "before it is Ready")
		claims := f.launch(ctx, 2)
		for _, claim := range claims {
			env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		}

		By("deleting it while it is in use")
		env.delete(ctx, f.template)
		f.waitNotReady(ctx, v1alpha1.ConditionDeletable, v1alpha1.ReasonNodeClaimsRemain, "waits for 2 NodeClaims", "delete the NodePools", claims[0].Name, claims[1].Name)
		Eventually(ctx, func() []string { return env.events(ctx, v1alpha1.Kind, f.name, "WaitingOnNodeClaimTermination") }).
			Should(ContainElement(ContainSubstring("waits for 2 NodeClaims")))
		_, err := env.cloudProvider().Create(ctx, f.newClaim())
		Expect(cloudprovider.IsNodeClassNotReadyError(err)).To(BeTrue(), "%v", err)
		for _, claim := range claims {
			env.waitMachine(ctx, claim)
		}

		By("deleting its claims")
		for _, claim := range claims {
			env.delete(ctx, claim)
		}
		env.waitGone(ctx, claims[0])
		env.waitGone(ctx, claims[1])
		env.waitGone(ctx, f.template)
		Expect(f.resources(ctx)).To(BeEmpty(), "generated resources, although emptyTTLSeconds is 30 minutes")
		Expect(f.simulatedPools(ctx)).To(BeEmpty())
		Expect(env.exists(ctx, f.infrastructure)).To(BeTrue(), "the base template")
	})
})
