// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// longer than core waits between two calls of CloudProvider.Delete
// (karpenter: pkg/controllers/nodeclaim/lifecycle/controller.go, finalize).
const deleteInterval = 5 * time.Second

var _ = forEachKind("Deleting a claim", func(k kind) {
	It("before a Machine was requested leaves none", func(ctx SpecContext) {
		f := k.newFixture("unasked").delays(0, 0, never).createReady(ctx)
		machines := f.watchMachines(ctx)
		f.createResource(ctx)
		claim := f.newClaim()
		f.launchPaused(ctx, claim)
		f.caughtUp(ctx)
		Expect(f.resource(ctx).Replicas()).To(BeZero(), "replicas of a paused scalable resource")
		env.delete(ctx, claim)
		env.waitGone(ctx, claim)
		env.annotate(ctx, f.resource(ctx).API(), clusterv1.PausedAnnotation, nil)
		f.caughtUp(ctx)
		Expect(machines.everCreated()).To(BeEmpty())
		Expect(f.resource(ctx).Replicas()).To(BeZero())
	})

	It("whose Machine was requested and does not exist yet takes no Machine from another claim", func(ctx SpecContext) {
		f := k.newFixture("unborn").delays(0, 0, never).createReady(ctx)
		f.createResource(ctx)

		By("requesting two Machines that are not created yet")
		maker := f.maker(ctx)
		env.annotate(ctx, maker, clusterv1.PausedAnnotation, new(""))
		claims := f.launch(ctx, 2)
		Eventually(ctx, func() int32 { return f.resource(ctx).Replicas() }).Should(BeEquivalentTo(2))

		By("deleting one claim")
		env.delete(ctx, claims[0])
		env.waitGone(ctx, claims[0])
		f.caughtUp(ctx)
		Expect(f.resource(ctx).Replicas()).To(BeEquivalentTo(2), "replicas, whose Machines can exist by now")

		By("letting them be created")
		env.annotate(ctx, maker, clusterv1.PausedAnnotation, nil)
		machine := env.waitMachine(ctx, claims[1])
		env.waitReplicas(ctx, f, 1)
		Expect(env.exists(ctx, machine)).To(BeTrue())
		Expect(machine.DeletionTimestamp).To(BeNil())
		Expect(env.machinesOf(ctx, claims[1])).To(HaveLen(1))

		By("deleting the other one while nothing is created")
		env.annotate(ctx, maker, clusterv1.PausedAnnotation, new(""))
		last := f.launchOne(ctx)
		Eventually(ctx, func() int32 { return f.resource(ctx).Replicas() }).Should(BeEquivalentTo(2))
		env.delete(ctx, last)
		env.delete(ctx, claims[1])
		env.waitGone(ctx, last)
		env.annotate(ctx, maker, clusterv1.PausedAnnotation, nil)
		env.waitGone(ctx, claims[1])
		env.waitReplicas(ctx, f, 0)
	})

	It("keeps it until its Machine is deleted, in whatever state that is", func(ctx SpecContext) {
		fixtures := []*fixture{k.newFixture("noid").delays(never, never, 0), k.newFixture("nonode").delays(0, 0, never), k.newFixture("node")}
		reached := []func(*karpv1.NodeClaim){
			func(claim *karpv1.NodeClaim) { env.waitProviderID(ctx, claim, provisionalID(claim)) },
			func(claim *karpv1.NodeClaim) {
				Eventually(ctx, func() string { return env.providerID(ctx, claim) }).Should(HavePrefix("sim://"))
			},
			func(claim *karpv1.NodeClaim) { env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized) },
		}
		var claims []*karpv1.NodeClaim
		for _, f := range fixtures {
			claims = append(claims, f.createReady(ctx).launchOne(ctx))
		}
		var machines []*clusterv1.Machine
		var releases []func(context.Context)
		for i, claim := range claims {
			machines = append(machines, env.waitMachine(ctx, claim))
			reached[i](claim)
			releases = append(releases, env.hold(ctx, machines[i]))
		}

		for _, claim := range claims {
			env.delete(ctx, claim)
		}
		for _, machine := range machines {
			Eventually(ctx, func() bool {
				return env.exists(ctx, machine) && !machine.DeletionTimestamp.IsZero()
			}).Should(BeTrue(), "Machine %s is being deleted", machine.Name)
		}
		// Core looks again after deleteInterval.
		Consistently(ctx, func(g Gomega) {
			for _, claim := range claims {
				g.Expect(env.exists(ctx, claim)).To(BeTrue(), "NodeClaim %s, while its Machine exists", claim.Name)
			}
		}).WithTimeout(deleteInterval + time.Second).Should(Succeed())

		for _, release := range releases {
			release(ctx)
		}
		for i, claim := range claims {
			env.waitGone(ctx, claim)
			Expect(env.exists(ctx, machines[i])).To(BeFalse())
			env.waitReplicas(ctx, fixtures[i], 0)
		}
		for _, f := range fixtures {
			f.caughtUp(ctx)
			Expect(f.machines(ctx)).To(BeEmpty())
		}
	})
})
