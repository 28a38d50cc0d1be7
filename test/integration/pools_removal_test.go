// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/history"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

// How a Machine of a MachinePool is removed depends on what the infrastructure provider does with
// annotated, deleted and surplus instances; see docs/design/machinepools.md.
var _ = Describe("The instance of a claim of a MachinePool", long, func() {
	// launched returns claims that have become Nodes, and the names of their instances.
	launched := func(ctx context.Context, f *fixture, count int) (claims []*karpv1.NodeClaim, instances []string) {
		GinkgoHelper()
		claims = f.launch(ctx, count)
		for _, claim := range claims {
			env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
			instances = append(instances, env.simulated(ctx, env.waitMachine(ctx, claim)).Name)
		}
		return claims, instances
	}

	DescribeTable("is the only one that is deleted with its claim, and is never replaced",
		func(ctx SpecContext, name string, behavior infrav1.PoolBehavior) {
			f := machinePools.newFixture(name).behaving(behavior).createReady(ctx)
			instances := f.watchInstances(ctx)
			claims, names := launched(ctx, f, 6)

			By("deleting one claim")
			env.delete(ctx, claims[2])
			env.waitGone(ctx, claims[2])
			env.waitReplicas(ctx, f, 5)
			f.caughtUp(ctx)
			Expect(instances.everCreated()).To(ConsistOf(names))
			Expect(instances.everDeleted()).To(ConsistOf(names[2]))

			By("deleting three while others are created")
			for _, i := range []int{0, 1, 4} {
				env.delete(ctx, claims[i])
			}
			next, added := launched(ctx, f, 2)
			for _, i := range []int{0, 1, 4} {
				env.waitGone(ctx, claims[i])
			}
			env.waitReplicas(ctx, f, 4)
			f.caughtUp(ctx)
			Expect(instances.everCreated()).To(ConsistOf(append(added, names...)))
			Expect(instances.everDeleted()).To(ConsistOf(names[0], names[1], names[2], names[4]))
			for _, claim := range append(next, claims[3], claims[5]) {
				Expect(env.get(ctx, claim)).To(Succeed())
				Expect(claim.DeletionTimestamp).To(BeNil())
				Expect(claim.Status.ProviderID).To(Equal(env.waitMachine(ctx, claim).Spec.ProviderID))
			}
		},
		Entry("with a strict provider", "strict", infrav1.PoolBehavior{}),
		Entry("with one that immediately removes annotated instances, like Azure's", "azure", infrav1.PoolBehavior{RemoveAnnotated: true}),
	)

	It("is deleted in time, even if a user spoils the times in its annotations", func(ctx SpecContext) {
		f := machinePools.newFixture("times").createReady(ctx)
		claims, _ := launched(ctx, f, 1)
		machine := env.waitMachine(ctx, claims[0])
		tomorrow := time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)
		env.annotate(ctx, f.resource(ctx).API(), v1alpha1.ReplicasSetAtAnnotation, &tomorrow)
		Eventually(ctx, func() map[string]string { return f.resource(ctx).GetAnnotations() }).
			ShouldNot(HaveKeyWithValue(v1alpha1.ReplicasSetAtAnnotation, tomorrow))

		env.delete(ctx, claims[0])
		Eventually(ctx, func(g Gomega) {
			g.Expect(env.get(ctx, machine)).To(Succeed())
			g.Expect(machine.Annotations).To(HaveKey(v1alpha1.MarkedForDeletionAtAnnotation))
		}).Should(Succeed())
		env.annotate(ctx, machine, v1alpha1.MarkedForDeletionAtAnnotation, new("soon"))
		env.waitGone(ctx, claims[0])
		env.waitGone(ctx, machine)
	})

	It("ends its claim if it fails, and the next claim gets another", func(ctx SpecContext) {
		f := machinePools.newFixture("ends").breaks(history.WrongDelete).createReady(ctx)
		claims, names := launched(ctx, f, 2)
		instance := env.simulated(ctx, env.waitMachine(ctx, claims[0]))
		env.delete(ctx, instance)
		env.waitGone(ctx, claims[0])
		env.waitGone(ctx, instance)

		next := f.launchOne(ctx)
		env.waitFor(ctx, next, karpv1.ConditionTypeInitialized)
		env.waitReplicas(ctx, f, 2)
		Eventually(ctx, func() int { return len(f.instances(ctx)) }).Should(Equal(2))
		other := env.simulated(ctx, env.waitMachine(ctx, next))
		Expect(names).NotTo(ContainElement(other.Name))
		Expect(env.simulated(ctx, env.waitMachine(ctx, claims[1])).Name).To(Equal(names[1]))
		f.caughtUp(ctx)
		Expect(f.instances(ctx)).To(ConsistOf(
			HaveField("Name", other.Name), HaveField("Name", names[1])))
	})

	It("is replaced once if it fails while it boots, and its provider does not report that", func(ctx SpecContext) {
		f := machinePools.newFixture("untold").breaks(history.WrongDelete).delays(0, 0, never)
		f.template.Spec.SpareTTLSeconds = new(int32(60)) // its replacement exists before the loss is known
		f.createReady(ctx)
		instances := f.watchInstances(ctx)
		claim := f.launchOne(ctx)
		machine := env.waitMachine(ctx, claim)
		instance := env.simulated(ctx, machine)
		provider := f.maker(ctx)
		env.annotate(ctx, provider, clusterv1.PausedAnnotation, new(""))
		env.forceGone(ctx, instance)
		env.annotate(ctx, provider, clusterv1.PausedAnnotation, nil)

		env.waitGone(ctx, machine)
		next := env.simulated(ctx, env.waitMachine(ctx, claim))
		env.waitReplicas(ctx, f, 1)
		f.caughtUp(ctx)
		Expect(instances.everCreated()).To(ConsistOf(instance.Name, next.Name))
		Expect(f.instances(ctx)).To(HaveLen(1))
	})

	It("is replaced if its Machine was deleted by hand while it boots, and not if that had a Node", func(ctx SpecContext) {
		f := machinePools.newFixture("byhands").breaks(history.WrongDelete).createReady(ctx)
		instances := f.watchInstances(ctx)
		claims, names := launched(ctx, f, 2)

		By("deleting a Machine with a Node")
		used := env.waitMachine(ctx, claims[0])
		env.delete(ctx, used)
		env.waitGone(ctx, claims[0])
		Expect(env.exists(ctx, used)).To(BeFalse())
		env.waitReplicas(ctx, f, 1)
		f.caughtUp(ctx)
		Expect(instances.everCreated()).To(ConsistOf(names))
		Expect(instances.everDeleted()).To(ConsistOf(names[0]))

		By("deleting one that boots")
		slow := machinePools.newFixture("byhandsslow").breaks(history.WrongDelete).delays(0, never, 0).createReady(ctx)
		instances = slow.watchInstances(ctx)
		claim := slow.launchOne(ctx)
		booting := env.waitMachine(ctx, claim)
		first := env.simulated(ctx, booting).Name
		env.delete(ctx, booting)
		env.waitGone(ctx, booting)
		second := env.waitMachine(ctx, claim)
		Expect(second.UID).NotTo(Equal(booting.UID))
		env.waitReplicas(ctx, slow, 1)
		slow.caughtUp(ctx)
		Expect(instances.everCreated()).To(ConsistOf(first, env.simulated(ctx, second).Name))
		Expect(env.machinesOf(ctx, claim)).To(HaveLen(1))
	})
})
