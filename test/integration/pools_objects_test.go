// SPDX-License-Identifier: Apache-2.0

package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/history"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

// Each MachinePool has its own machine pool, while MachineDeployments share what they refer to
// (patches_test.go).
var _ = Describe("The objects of a MachinePool", func() {
	It("are generated from the template with its patches, created again if they are deleted, and deleted with it", func(ctx SpecContext) {
		f := machinePools.newFixture("objects").breaks(history.WrongDelete).delays(0, 0, never)
		f.template.Spec.ScalableResource.EmptyTTLSeconds = new(int32(1))
		f.template.Spec.Patches = []v1alpha1.Patch{patch("add", "instanceType", "{{ .instanceType }}-x")}
		f.createReady(ctx)
		Expect(f.simulatedPools(ctx)).To(BeEmpty(), "they are created when they are needed")
		claim := f.launchOne(ctx)
		env.waitMachine(ctx, claim)

		pool := f.simulatedPool(ctx)
		Expect(pool.Name).To(Equal(f.resource(ctx).GetName()))
		Expect(pool.Spec.InstanceType).To(Equal(instanceType + "-x"))
		Expect(pool.Spec.Delays).To(Equal(f.machine().Delays))
		Expect(pool.Labels).To(And(HaveKeyWithValue(v1alpha1.TemplateLabel, f.name), HaveKeyWithValue(clusterv1.ClusterNameLabel, served.Name)))
		Expect(pool.Annotations).To(HaveKeyWithValue(clusterv1.TemplateClonedFromNameAnnotation, f.name))
		Expect(f.resource(ctx).References()).To(ConsistOf(And(HaveField("Kind", "SimulatedMachinePool"), HaveField("Name", pool.Name))))
		Expect(f.resource(ctx).API().(*clusterv1.MachinePool).Spec.FailureDomains).To(ConsistOf(zone))
		Expect(env.simulated(ctx, env.waitMachine(ctx, claim)).Spec.Zone).To(Equal(zone))
		Expect(f.copies(ctx)).To(BeEmpty(), "templates")

		By("deleting the machine pool: its instances are deleted, another pool is created, and the claim gets one of its Machines")
		Eventually(ctx, func() string { return env.providerID(ctx, claim) }).Should(HavePrefix("sim://"))
		lost := env.waitMachine(ctx, claim)
		env.delete(ctx, pool)
		env.waitGone(ctx, lost)
		again := f.simulatedPool(ctx)
		Expect(again.Name).To(Equal(pool.Name))
		Expect(again.UID).NotTo(Equal(pool.UID))
		Expect(env.waitMachine(ctx, claim).UID).NotTo(Equal(lost.UID))
		env.waitReplicas(ctx, f, 1)

		By("deleting the claim: the MachinePool is deleted with what was generated for it")
		env.delete(ctx, claim)
		env.waitGone(ctx, claim)
		Eventually(ctx, func(g Gomega) {
			g.Expect(f.resources(ctx)).To(BeEmpty())
			g.Expect(f.simulatedPools(ctx)).To(BeEmpty())
		}).Should(Succeed())
	})

	It("have other names if their content differs, and those in use do not change", func(ctx SpecContext) {
		f := machinePools.newFixture("contents").delays(0, 0, never)
		onlyB := patch("add", "region", "elsewhere")
		onlyB.EnabledIf = `{{ eq .zone "zone-b" }}`
		f.template.Spec.Patches = []v1alpha1.Patch{onlyB}
		f.catalog.Spec.InstanceTypes[0].Offerings = append(f.catalog.Spec.InstanceTypes[0].Offerings,
			v1alpha1.Offering{Zones: []v1alpha1.Zone{"zone-b"}, CapacityType: karpv1.CapacityTypeOnDemand, Price: "0.2"})
		f.createReady(ctx)
		a, b := f.newClaim(), f.newClaim()
		b.Spec.Requirements[1].Values = []string{"zone-b"}
		for _, claim := range []*karpv1.NodeClaim{a, b} {
			Expect(env.client.Create(ctx, claim)).To(Succeed())
		}
		first := env.waitMachine(ctx, a)
		env.waitMachine(ctx, b)
		regions := func() map[string]string {
			return lo.SliceToMap(f.simulatedPools(ctx), func(pool infrav1.SimulatedMachinePool) (string, string) { return pool.Name, pool.Spec.Region })
		}
		Expect(env.get(ctx, a)).To(Succeed())
		Expect(env.get(ctx, b)).To(Succeed())
		resourceA, resourceB := a.Annotations[v1alpha1.ScalableResourceAnnotation], b.Annotations[v1alpha1.ScalableResourceAnnotation]
		Expect(regions()).To(Equal(map[string]string{resourceA: "", resourceB: "elsewhere"}))

		By("changing the base: the next claim gets another resource, and running Machines stay")
		env.change(ctx, f.infrastructure, func() { f.machine().Region = "here" })
		Eventually(ctx, func(g Gomega) {
			next := f.launchOne(ctx)
			env.waitFor(ctx, next, karpv1.ConditionTypeLaunched)
			g.Expect(next.Annotations[v1alpha1.ScalableResourceAnnotation]).NotTo(Equal(resourceA))
			env.waitMachine(ctx, next)
			g.Expect(regions()).To(HaveKeyWithValue(next.Annotations[v1alpha1.ScalableResourceAnnotation], "here"))
		}).Should(Succeed())
		Expect(regions()).To(And(HaveKeyWithValue(resourceA, ""), HaveKeyWithValue(resourceB, "elsewhere")))
		Expect(env.waitMachine(ctx, a).UID).To(Equal(first.UID))
	})
})
