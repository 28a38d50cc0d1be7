// SPDX-License-Identifier: Apache-2.0

package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

var _ = forEachKind("A claim", func(k kind) {
	It("becomes a Node through a scalable resource and a Machine, and is deleted with them", func(ctx SpecContext) {
		f := k.newFixture("path").createReady(ctx)
		claim := f.launchOne(ctx)
		env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)

		By("reading what was created")
		resource := f.resource(ctx)
		Expect(claim.Annotations).To(HaveKeyWithValue(v1alpha1.ScalableResourceAnnotation, resource.GetName()))
		Expect(claim.Annotations).To(HaveKeyWithValue(v1alpha1.TemplateHashAnnotation, resource.GetLabels()[v1alpha1.TemplateHashLabel]))
		Expect(resource.Replicas()).To(BeEquivalentTo(1))
		Expect(resource.GetAnnotations()).NotTo(HaveKey(v1alpha1.EmptySinceAnnotation))
		machine := env.waitMachine(ctx, claim)
		Expect(f.machines(ctx)).To(HaveLen(1))
		Expect(claim.Status.ProviderID).To(Equal(machine.Spec.ProviderID))
		Expect(claim.Status.ProviderID).To(HavePrefix("sim://"))
		Expect(claim.StatusConditions().Get(karpv1.ConditionTypeRegistered).IsTrue()).To(BeTrue())

		node := env.nodeOf(ctx, claim.Status.ProviderID)
		Expect(node).NotTo(BeNil())
		Expect(claim.Status.NodeName).To(Equal(node.Name))
		for _, labels := range []map[string]string{node.Labels, claim.Labels} {
			Expect(labels).To(HaveKeyWithValue(corev1.LabelInstanceTypeStable, instanceType))
			Expect(labels).To(HaveKeyWithValue(corev1.LabelTopologyZone, zone))
			Expect(labels).To(HaveKeyWithValue(karpv1.CapacityTypeLabelKey, karpv1.CapacityTypeOnDemand))
			Expect(labels).To(HaveKeyWithValue(karpv1.NodePoolLabelKey, f.name))
		}
		Expect(node.Spec.Taints).To(BeEmpty())
		Eventually(ctx, func(g Gomega) {
			g.Expect(env.get(ctx, f.template)).To(Succeed())
			g.Expect(f.template.Status.Machines).To(BeEquivalentTo(1))
			g.Expect(f.template.Status.ScalableResources).To(ConsistOf(v1alpha1.ScalableResourceStatus{
				Name: resource.GetName(), Kind: v1alpha1.ScalableResourceKind(k),
				InstanceType: instanceType, Zone: zone, CapacityType: karpv1.CapacityTypeOnDemand, Replicas: 1, ReadyReplicas: 1,
			}))
		}).Should(Succeed())

		By("deleting the claim")
		env.delete(ctx, claim)
		env.waitGone(ctx, claim)
		Expect(env.exists(ctx, machine)).To(BeFalse(), "the Machine outlived its claim")
		env.waitGone(ctx, node)
		resource = env.waitReplicas(ctx, f, 0)
		Eventually(ctx, func() map[string]string { return f.resource(ctx).GetAnnotations() }).Should(HaveKey(v1alpha1.EmptySinceAnnotation))

		By("launching another one, which uses the same scalable resource")
		next := f.launchOne(ctx)
		env.waitFor(ctx, next, karpv1.ConditionTypeLaunched)
		env.waitMachine(ctx, next)
		Expect(f.resource(ctx).GetUID()).To(Equal(resource.GetUID()))
		Expect(f.resource(ctx).GetAnnotations()).NotTo(HaveKey(v1alpha1.EmptySinceAnnotation))
	})

	It("leaves a scalable resource that is deleted when it has been empty for emptyTTLSeconds", func(ctx SpecContext) {
		f := k.newFixture("ttl").delays(0, 0, never)
		f.template.Spec.ScalableResource.EmptyTTLSeconds = new(int32(1))
		f.createReady(ctx)
		claim := f.launchOne(ctx)
		env.waitMachine(ctx, claim)
		env.delete(ctx, claim)
		env.waitGone(ctx, claim)
		Eventually(ctx, f.resources).Should(BeEmpty())
	})
})
