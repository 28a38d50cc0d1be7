// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/test/harness/history"
)

var _ = forEachKind("The Machine of a deleted claim", func(k kind) {
	It("is the only one that is deleted, is not replaced, and delays no claim", func(ctx SpecContext) {
		f := k.newFixture("victim").createReady(ctx)
		machines := f.watchMachines(ctx)
		claims := f.launch(ctx, 5)
		names := make([]string, len(claims))
		for i, claim := range claims {
			env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
			names[i] = env.waitMachine(ctx, claim).Name
		}

		By("deleting one of five claims")
		env.delete(ctx, claims[2])
		env.waitGone(ctx, claims[2])
		env.waitReplicas(ctx, f, 4)
		f.caughtUp(ctx)
		Expect(machines.everCreated()).To(ConsistOf(names))
		Expect(machines.everDeleted()).To(ConsistOf(names[2]))

		By("deleting one whose Machine is deleted slowly, and launching another")
		stuck := env.waitMachine(ctx, claims[4])
		release := env.hold(ctx, stuck)
		env.delete(ctx, claims[4])
		Eventually(ctx, func() bool { return env.exists(ctx, stuck) && !stuck.DeletionTimestamp.IsZero() }).Should(BeTrue())
		next := f.launchOne(ctx)
		env.waitFor(ctx, next, karpv1.ConditionTypeInitialized)
		Expect(env.exists(ctx, stuck)).To(BeTrue())
		Eventually(ctx, func() int32 { return f.resource(ctx).Replicas() }).Should(BeEquivalentTo(4))
		f.caughtUp(ctx)
		Expect(machines.everCreated()).To(HaveLen(6))

		By("letting its deletion continue")
		release(ctx)
		env.waitGone(ctx, claims[4])
		env.waitReplicas(ctx, f, 4)
		f.caughtUp(ctx)
		Expect(machines.everCreated()).To(HaveLen(6))
		Expect(machines.everDeleted()).To(ConsistOf(names[2], names[4]))
		for _, claim := range []*karpv1.NodeClaim{claims[0], claims[1], claims[3], next} {
			Expect(env.get(ctx, claim)).To(Succeed())
			Expect(claim.DeletionTimestamp).To(BeNil())
			Expect(claim.Status.ProviderID).To(Equal(env.waitMachine(ctx, claim).Spec.ProviderID))
		}
	})

	It("delays no claim, even with nine others that are deleted slowly", func(ctx SpecContext) {
		f := k.newFixture("tenslow").createReady(ctx)
		machines := f.watchMachines(ctx)
		claims := f.launch(ctx, 10)
		for _, claim := range claims {
			env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		}
		var releases []func(context.Context)
		for _, claim := range claims {
			releases = append(releases, env.hold(ctx, env.waitMachine(ctx, claim)))
			env.delete(ctx, claim)
		}
		var sets []clusterv1.MachineSet
		Eventually(ctx, func(g Gomega) {
			g.Expect(f.resource(ctx).Replicas()).To(BeZero())
			sets = f.machineSets(ctx)
			for _, set := range sets { // a MachinePool has none
				g.Expect(set.Spec.Replicas).To(HaveValue(BeZero()))
			}
			for _, machine := range f.machines(ctx) {
				g.Expect(machine.DeletionTimestamp).NotTo(BeNil())
			}
		}).Should(Succeed())

		next := f.launchOne(ctx)
		env.waitMachine(ctx, next)
		for _, set := range f.machineSets(ctx) {
			// The MachineDeployment controller alone would raise it by one a second, eleven times.
			Expect(set.Generation-sets[0].Generation).To(BeNumerically("<=", 5), "writes of the MachineSet")
		}
		env.waitFor(ctx, next, karpv1.ConditionTypeInitialized)
		Expect(f.machines(ctx)).To(HaveLen(11), "ten are still being deleted")
		for _, release := range releases {
			release(ctx)
		}
		for _, claim := range claims {
			env.waitGone(ctx, claim)
		}
		env.waitReplicas(ctx, f, 1)
		f.caughtUp(ctx)
		Expect(machines.everCreated()).To(HaveLen(11))
	})

	It("is replaced if it was deleted by hand before its Node joined", func(ctx SpecContext) {
		f := k.newFixture("byhand").breaks(history.WrongDelete).delays(0, 0, never).createReady(ctx)
		machines := f.watchMachines(ctx)
		claim := f.launchOne(ctx)
		first := env.waitMachine(ctx, claim)
		Eventually(ctx, func() string { return env.providerID(ctx, claim) }).Should(HavePrefix("sim://"))
		env.delete(ctx, first)
		env.waitGone(ctx, first)
		second := env.waitMachine(ctx, claim)
		Expect(second.UID).NotTo(Equal(first.UID))
		Eventually(ctx, func(g Gomega) {
			g.Expect(env.get(ctx, second)).To(Succeed())
			g.Expect(second.Spec.ProviderID).NotTo(BeEmpty())
			g.Expect(env.providerID(ctx, claim)).To(Equal(second.Spec.ProviderID))
		}).Should(Succeed())
		// While the first one is being deleted, replicas count it. If it is removed before the
		// MachineSet reconciles, there is temporarily one Machine too many.
		env.waitReplicas(ctx, f, 1)
		Expect(len(machines.everCreated())).To(BeNumerically("<=", 3))
		f.caughtUp(ctx)
		Expect(uids(f.machines(ctx))).To(ConsistOf(second.UID))
		Expect(env.stateNodesOf(claim)).To(HaveLen(1))
	})
})
