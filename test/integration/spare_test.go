// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/history"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

var _ = forEachKind("A spare Machine", func(k kind) {
	It("that takes 25 minutes to boot serves the claim after the one that Karpenter gave up on", func(ctx SpecContext) {
		f := k.newFixture("slowboot").delays(0, never, 0)
		f.template.Spec.LaunchTimeoutSeconds = new(int32(2400))
		f.template.Spec.SpareTTLSeconds = new(int32(60))
		f.createReady(ctx)
		machines := f.watchMachines(ctx)
		first := f.launchOne(ctx)
		machine := env.waitMachine(ctx, first)

		By("letting Karpenter give up on the claim")
		env.later(ctx, registrationTimeout, first, func(g Gomega) {
			g.Expect(env.exists(ctx, first)).To(BeFalse(), "the claim after 15 minutes")
		})
		Expect(env.get(ctx, machine)).To(Succeed())
		Expect(machine.DeletionTimestamp).To(BeNil())
		Expect(machine.Labels).NotTo(HaveKey(v1alpha1.NodeClaimUIDLabel))
		Expect(machine.Annotations).To(HaveKey(v1alpha1.SpareSinceAnnotation))
		Expect(machine.Annotations).NotTo(HaveKey(v1alpha1.NodeClaimAnnotation))

		By("making the next claim for the same Pods")
		second := f.launchOne(ctx)
		Expect(env.waitMachine(ctx, second).UID).To(Equal(machine.UID))
		Expect(env.get(ctx, machine)).To(Succeed())
		Expect(machine.Annotations).NotTo(HaveKey(v1alpha1.SpareSinceAnnotation))

		By("booting the machine")
		instance := env.simulated(ctx, machine)
		env.change(ctx, instance, func() { instance.Spec.Delays = infrav1.Delays{} })
		env.waitFor(ctx, second, karpv1.ConditionTypeInitialized)
		Expect(env.providerID(ctx, second)).To(Equal(env.simulated(ctx, machine).Spec.ProviderID))
		Expect(machines.everCreated()).To(ConsistOf(machine.Name))
		Expect(env.stateNodesOf(second)).To(HaveLen(1))
	})

	It("that no claim needs is deleted after spareTTLSeconds, and not replaced", func(ctx SpecContext) {
		f := k.newFixture("untaken").delays(0, 0, never)
		f.template.Spec.SpareTTLSeconds = new(int32(60))
		f.createReady(ctx)
		machines := f.watchMachines(ctx)
		claims := f.launch(ctx, 2)
		stays, goes := env.waitMachine(ctx, claims[0]), env.waitMachine(ctx, claims[1])
		// A provider ID is no reason to delete it: the Machine can have just got it.
		Eventually(ctx, func() string { return env.providerID(ctx, claims[1]) }).Should(HavePrefix("sim://"))
		env.delete(ctx, claims[1])
		env.waitGone(ctx, claims[1])
		Expect(env.get(ctx, goes)).To(Succeed())
		Expect(goes.Annotations).To(HaveKey(v1alpha1.SpareSinceAnnotation))
		env.later(ctx, 2*time.Minute, claims[0], func(g Gomega) {
			g.Expect(env.exists(ctx, goes)).To(BeFalse(), "the spare Machine after spareTTLSeconds")
		})
		env.waitReplicas(ctx, f, 1)
		f.caughtUp(ctx)
		Expect(machines.everCreated()).To(ConsistOf(stays.Name, goes.Name))
		Expect(machines.everDeleted()).To(ConsistOf(goes.Name))
	})

	It("is not kept if it has its provider ID and never gets a Node", func(ctx SpecContext) {
		f := k.newFixture("never").delays(0, 0, never)
		f.template.Spec.SpareTTLSeconds = new(int32(3600))
		f.createReady(ctx)
		claim := f.launchOne(ctx)
		machine := env.waitMachine(ctx, claim)
		Eventually(ctx, func() string { return env.providerID(ctx, claim) }).Should(HavePrefix("sim://"))
		env.later(ctx, registrationTimeout, claim, func(g Gomega) {
			g.Expect(env.exists(ctx, claim)).To(BeFalse(), "the claim after 15 minutes")
		})
		Expect(env.exists(ctx, machine)).To(BeFalse(), "the Machine outlived its claim")
		env.waitReplicas(ctx, f, 0)
	})

	It("whose claim lost its finalizer by force is unlinked, or deleted if it has a Node", func(ctx SpecContext) {
		f := k.newFixture("forced").breaks(history.Finalizer)
		f.template.Spec.SpareTTLSeconds = new(int32(60))
		f.createReady(ctx)
		booted := f.launchOne(ctx)
		env.waitFor(ctx, booted, karpv1.ConditionTypeInitialized)
		used := env.waitMachine(ctx, booted)

		slow := k.newFixture("forcedslow").breaks(history.Finalizer).delays(0, never, 0)
		slow.template.Spec.SpareTTLSeconds = new(int32(60))
		slow.createReady(ctx)
		booting := slow.launchOne(ctx)
		unused := env.waitMachine(ctx, booting)

		for _, claim := range []*karpv1.NodeClaim{booted, booting} {
			env.forceGone(ctx, claim)
		}
		next := slow.launchOne(ctx)
		Expect(env.waitMachine(ctx, next).UID).To(Equal(unused.UID))
		Eventually(ctx, func() bool {
			if node := env.nodeOf(ctx, used.Spec.ProviderID); node != nil && !node.DeletionTimestamp.IsZero() {
				env.annotate(ctx, node, "integration.test/nudge", new(time.Now().String()))
			}
			return env.exists(ctx, used)
		}).Should(BeFalse(), "the Machine of a claim that no longer exists")
		env.waitReplicas(ctx, f, 0)
	})
})
