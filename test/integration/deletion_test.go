// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// longer than core waits between two calls of CloudProvider.Delete
// (karpenter: pkg/controllers/nodeclaim/lifecycle/controller.go, finalize).
const deleteInterval = 5 * time.Second

var _ = Describe("Deleting a claim", func() {
	It("before a Machine was asked for leaves none", func(ctx SpecContext) {
		f := newFixture("unasked").delays(0, 0, never).createReady(ctx)
		machines := f.watchMachines(ctx)
		first := f.launchOne(ctx)
		env.waitMachine(ctx, first)
		env.delete(ctx, first)
		env.waitGone(ctx, first)
		env.waitReplicas(ctx, f, 0)

		env.annotate(ctx, f.resource(ctx), clusterv1.PausedAnnotation, new(""))
		claim := f.launchOne(ctx)
		env.waitFor(ctx, claim, karpv1.ConditionTypeLaunched)
		Consistently(ctx, func() int32 { return lo.FromPtr(f.resource(ctx).Spec.Replicas) }).Should(BeZero(), "replicas of a paused MachineDeployment")
		env.delete(ctx, claim)
		env.waitGone(ctx, claim)
		env.annotate(ctx, f.resource(ctx), clusterv1.PausedAnnotation, nil)
		Consistently(ctx, machines.everCreated).Should(HaveLen(1), "only the first claim's Machine")
		Expect(lo.FromPtr(f.resource(ctx).Spec.Replicas)).To(BeZero())
	})

	It("whose Machine was asked for and is not there yet takes no Machine from another claim", func(ctx SpecContext) {
		f := newFixture("unborn").delays(0, 0, never).createReady(ctx)
		first := f.launchOne(ctx)
		env.waitMachine(ctx, first)
		env.delete(ctx, first)
		env.waitGone(ctx, first)
		env.waitReplicas(ctx, f, 0)

		By("asking for two Machines that Cluster API does not make for now")
		sets := &clusterv1.MachineSetList{}
		Expect(env.client.List(ctx, sets, client.MatchingLabels{clusterv1.MachineDeploymentNameLabel: f.resource(ctx).Name})).To(Succeed())
		Expect(sets.Items).To(HaveLen(1))
		set := &sets.Items[0]
		env.annotate(ctx, set, clusterv1.PausedAnnotation, new(""))
		claims := f.launch(ctx, 2)
		Eventually(ctx, func() int32 { return lo.FromPtr(f.resource(ctx).Spec.Replicas) }).Should(BeEquivalentTo(2))

		By("deleting one claim")
		env.delete(ctx, claims[0])
		env.waitGone(ctx, claims[0])
		Consistently(ctx, func() int32 { return lo.FromPtr(f.resource(ctx).Spec.Replicas) }).Should(BeEquivalentTo(2), "replicas, which may have been made")

		By("letting Cluster API make them")
		env.annotate(ctx, set, clusterv1.PausedAnnotation, nil)
		machine := env.waitMachine(ctx, claims[1])
		env.waitReplicas(ctx, f, 1)
		Expect(env.exists(ctx, machine)).To(BeTrue())
		Expect(machine.DeletionTimestamp).To(BeNil())
		Expect(env.machinesOf(ctx, claims[1])).To(HaveLen(1))

		By("deleting the other one while nothing is made")
		env.annotate(ctx, set, clusterv1.PausedAnnotation, new(""))
		last := f.launchOne(ctx)
		Eventually(ctx, func() int32 { return lo.FromPtr(f.resource(ctx).Spec.Replicas) }).Should(BeEquivalentTo(2))
		env.delete(ctx, last)
		env.delete(ctx, claims[1])
		env.waitGone(ctx, last)
		env.annotate(ctx, set, clusterv1.PausedAnnotation, nil)
		env.waitGone(ctx, claims[1])
		env.waitReplicas(ctx, f, 0)
	})

	DescribeTable("keeps it until its Machine is gone",
		func(ctx SpecContext, name string, providerID, nodeJoin time.Duration, condition string) {
			f := newFixture(name).delays(providerID, providerID, nodeJoin).createReady(ctx)
			claim := f.launchOne(ctx)
			machine := env.waitMachine(ctx, claim)
			if providerID == 0 {
				Eventually(ctx, func() string { return env.providerID(ctx, claim) }).Should(HavePrefix("sim://"))
			}
			env.waitFor(ctx, claim, condition)
			release := env.hold(ctx, machine)

			env.delete(ctx, claim)
			Eventually(ctx, func() bool {
				return env.exists(ctx, machine) && !machine.DeletionTimestamp.IsZero()
			}).Should(BeTrue(), "the Machine is being deleted")
			Consistently(ctx, func() bool { return env.exists(ctx, claim) }).WithTimeout(deleteInterval+time.Second).Should(BeTrue(), "the claim, while its Machine is there")

			release(ctx)
			env.waitGone(ctx, claim)
			Expect(env.exists(ctx, machine)).To(BeFalse())
			env.waitReplicas(ctx, f, 0)
			Consistently(ctx, f.machines).Should(BeEmpty())
		},
		Entry("that has no provider ID", "noid", never, time.Duration(0), karpv1.ConditionTypeLaunched),
		Entry("that has a provider ID and no Node", "nonode", time.Duration(0), never, karpv1.ConditionTypeLaunched),
		Entry("that is a Node", "node", time.Duration(0), time.Duration(0), karpv1.ConditionTypeInitialized),
	)
})
