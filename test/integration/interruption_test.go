// SPDX-License-Identifier: Apache-2.0

package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

var _ = forEachKind("A Node whose instance ends, as a termination handler announces", func(k kind) {
	It("is drained while the instance runs, and its spot offering is unavailable", func(ctx SpecContext) {
		f := k.newFixture("interrupted")
		f.catalog.Spec.InstanceTypes[0].Offerings = []v1alpha1.Offering{
			{Zones: []v1alpha1.Zone{zone}, CapacityType: karpv1.CapacityTypeSpot, Price: "0.05"},
			{Zones: []v1alpha1.Zone{zone}, CapacityType: karpv1.CapacityTypeOnDemand, Price: "0.1"},
		}
		f.createReady(ctx)
		claims := f.launch(ctx, 2)
		for _, claim := range claims {
			env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
			Expect(claim.Labels).To(HaveKeyWithValue(karpv1.CapacityTypeLabelKey, karpv1.CapacityTypeSpot))
		}
		ends, stays := claims[0], claims[1]
		machine := env.waitMachine(ctx, ends)
		pod, release := env.runProtected(ctx, f.name, ends.Status.NodeName)

		By("the handler sets its taint")
		node := env.nodeOf(ctx, ends.Status.ProviderID)
		env.change(ctx, node, func() {
			node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: "aws-node-termination-handler/spot-itn", Value: "event", Effect: corev1.TaintEffectNoSchedule})
		})
		Eventually(ctx, func() bool { return env.exists(ctx, ends) && !ends.DeletionTimestamp.IsZero() }).Should(BeTrue(), "the claim is deleted")
		Expect(env.get(ctx, f.template)).To(Succeed())
		Expect(f.template.Status.UnavailableOfferings).To(ConsistOf(And(
			HaveField("CapacityType", karpv1.CapacityTypeSpot), HaveField("Reason", v1alpha1.ReasonInterrupted), HaveField("Failures", BeEquivalentTo(1)),
		)))

		By("a replacement gets the other offering, while the Node is drained")
		next := f.launchOne(ctx)
		env.waitFor(ctx, next, karpv1.ConditionTypeInitialized)
		Expect(next.Labels).To(HaveKeyWithValue(karpv1.CapacityTypeLabelKey, karpv1.CapacityTypeOnDemand))
		Expect(env.exists(ctx, pod)).To(BeTrue())
		Expect(env.simulated(ctx, machine).DeletionTimestamp).To(BeNil(), "the instance")

		release(ctx)
		env.waitGone(ctx, pod)
		env.waitGone(ctx, ends)
		Expect(env.exists(ctx, machine)).To(BeFalse())
		Expect(env.get(ctx, f.template)).To(Succeed())
		Expect(f.template.Status.UnavailableOfferings).To(ConsistOf(HaveField("Failures", BeEquivalentTo(1))), "marked once")
		for _, claim := range []*karpv1.NodeClaim{stays, next} {
			Expect(env.get(ctx, claim)).To(Succeed())
			Expect(claim.DeletionTimestamp).To(BeNil())
		}
	})
})
