// SPDX-License-Identifier: Apache-2.0

package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

// Some MachinePools are rejected: only an infrastructure provider acts on their replicas, and some
// providers cannot serve single claims.
var _ = Describe("A MachinePool that cannot serve claims", func() {
	It("because it has no Machines is rejected before any instance exists", func(ctx SpecContext) {
		f := machinePools.newFixture("nomachines").behaving(infrav1.PoolBehavior{WithoutMachines: true}).createReady(ctx)
		instances := f.watchInstances(ctx)
		claim := f.launchOne(ctx)
		f.waitNotReady(ctx, v1alpha1.ConditionInfrastructureReady, v1alpha1.ReasonScalableResourceUnusable,
			"SimulatedMachinePool fleet/nomachines-pool-", "status.infrastructureMachineKind", "turn them on in the infrastructure provider", "set spec.scalableResource.kind to MachineDeployment")
		env.waitGone(ctx, claim)
		Expect(f.resource(ctx).Replicas()).To(BeZero())
		Expect(f.available(ctx, instanceType)).To(BeFalse())
		By("launching another claim nevertheless")
		env.waitGone(ctx, f.launchOne(ctx))
		f.caughtUp(ctx)
		Expect(instances.everCreated()).To(BeEmpty())
		Expect(f.resource(ctx).Replicas()).To(BeZero())
	})

	It("because another controller sets its replicas is not changed until that ends", func(ctx SpecContext) {
		f := machinePools.newFixture("managed").createReady(ctx)
		claims := f.launch(ctx, 2)
		for _, claim := range claims {
			env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		}
		machine := env.waitMachine(ctx, claims[0])
		instances := f.watchInstances(ctx)
		pool := f.resource(ctx)
		env.annotate(ctx, pool.API(), clusterv1.ReplicasManagedByAnnotation, new("an-autoscaler"))
		f.waitNotReady(ctx, v1alpha1.ConditionInfrastructureReady, v1alpha1.ReasonScalableResourceUnusable,
			"another controller sets the replicas of MachinePool fleet/"+pool.GetName(), "turn that off", clusterv1.ReplicasManagedByAnnotation)

		By("deleting a claim, and setting replicas as that controller would")
		env.delete(ctx, claims[0])
		env.change(ctx, pool.API(), func() { pool.SetReplicas(3, metav1.Now().Time) })
		Eventually(ctx, func() int { return len(f.machines(ctx)) }).Should(Equal(3))
		// Core calls CloudProvider.Delete again after deleteInterval.
		Consistently(ctx, func(g Gomega) {
			g.Expect(f.resource(ctx).Replicas()).To(BeEquivalentTo(3))
			g.Expect(env.exists(ctx, claims[0])).To(BeTrue(), "its claim waits")
			for _, machine := range f.machines(ctx) {
				g.Expect(machine.DeletionTimestamp).To(BeNil())
				g.Expect(machine.Annotations).NotTo(HaveKey(v1alpha1.MarkedForDeletionAtAnnotation))
			}
		}).WithTimeout(deleteInterval + still).Should(Succeed())
		Expect(instances.everDeleted()).To(BeEmpty())

		By("ending that")
		env.annotate(ctx, pool.API(), clusterv1.ReplicasManagedByAnnotation, nil)
		f.waitReady(ctx)
		env.waitGone(ctx, claims[0])
		Expect(env.exists(ctx, machine)).To(BeFalse())
		env.waitReplicas(ctx, f, 1)
		stays := env.waitMachine(ctx, claims[1])
		Expect(uids(f.machines(ctx))).To(ConsistOf(stays.UID))
		env.waitFor(ctx, f.launchOne(ctx), karpv1.ConditionTypeInitialized)
	})

	It("because its infrastructure is in use by another owner is rejected", func(ctx SpecContext) {
		f := machinePools.newFixture("inuse")
		other := machinePools.newFixture("inuseother").createReady(ctx)
		theirs := other.createResource(ctx)
		other.simulatedPool(ctx)
		f.template.Spec.Template.Spec.InfrastructureRef.Kind = "SimulatedMachinePool"
		f.template.Spec.Template.Spec.InfrastructureRef.Name = theirs.GetName()
		f.create(ctx)
		f.waitNotReady(ctx, v1alpha1.ConditionInfrastructureReady, v1alpha1.ReasonReferenceKindUnusable,
			"SimulatedMachinePool fleet/"+theirs.GetName(), "is in use by MachinePool "+theirs.GetName(), "create another one")
	})
})

var _ = Describe("An infrastructure template of the wrong kind", func() {
	DescribeTable("makes the template not Ready, and the message names the correct kind",
		func(ctx SpecContext, k, wrong kind, words ...string) {
			f := k.newFixture("wrongkind")
			right := f.template.Spec.Template.Spec.InfrastructureRef
			infrastructure := wrong.newInfrastructure(f.name + "-wrong")
			*machineSpec(infrastructure) = *f.machine().DeepCopy()
			Expect(env.client.Create(ctx, infrastructure)).To(Succeed())
			f.template.Spec.Template.Spec.InfrastructureRef = wrong.infrastructureRef(infrastructure.GetName())
			f.create(ctx)
			f.waitNotReady(ctx, v1alpha1.ConditionInfrastructureReady, v1alpha1.ReasonReferenceKindUnusable,
				append(words, "spec.template.spec.infrastructureRef", wrong.infrastructureRef("").Kind+" fleet/"+infrastructure.GetName())...)
			env.change(ctx, f.template, func() { f.template.Spec.Template.Spec.InfrastructureRef = right })
			f.waitReady(ctx)
		},
		Entry("for MachinePools", machinePools, machineDeployments,
			"is not for MachinePools", "name a machine pool or a template of one", "spec.scalableResource.kind to MachineDeployment"),
		Entry("for MachineDeployments", machineDeployments, machinePools,
			"is for MachinePools", "name a template of machines", "spec.scalableResource.kind to MachinePool"),
	)
})

var _ = Describe("A machine pool without an owner", func() {
	It("can be the base of MachinePools, and does not change", func(ctx SpecContext) {
		f := machinePools.newFixture("ownerless")
		base := &infrav1.SimulatedMachinePool{
			ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: f.name, Labels: map[string]string{"team": "platform"}},
			Spec:       *f.poolSpec().DeepCopy(),
		}
		Expect(env.client.Create(ctx, base)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { env.delete(ctx, base) })
		before := base.DeepCopy()
		f.template.Spec.Template.Spec.InfrastructureRef.Kind = "SimulatedMachinePool"
		f.createReady(ctx)
		claim := f.launchOne(ctx)
		env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		pools := f.simulatedPools(ctx)
		Expect(pools).To(HaveLen(1))
		Expect(pools[0].Name).To(Equal(f.resource(ctx).GetName()))
		Expect(pools[0].Labels).NotTo(HaveKey("team"))
		Expect(pools[0].Spec.InstanceType).To(Equal(instanceType))

		By("changing it: the next claim gets another MachinePool")
		Expect(env.get(ctx, base)).To(Succeed())
		Expect(base).To(Equal(before))
		env.change(ctx, base, func() { base.Spec.Region = "elsewhere" })
		Eventually(ctx, func(g Gomega) {
			next := f.launchOne(ctx)
			env.waitFor(ctx, next, karpv1.ConditionTypeLaunched)
			g.Expect(next.Annotations[v1alpha1.ScalableResourceAnnotation]).NotTo(Equal(claim.Annotations[v1alpha1.ScalableResourceAnnotation]))
		}).Should(Succeed())
		Expect(env.exists(ctx, claim)).To(BeTrue())
		Expect(claim.DeletionTimestamp).To(BeNil())
		Expect(lo.FromPtr(env.simulated(ctx, env.waitMachine(ctx, claim)).Status.Initialization.Provisioned)).To(BeTrue())
	})
})
