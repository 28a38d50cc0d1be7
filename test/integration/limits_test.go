// SPDX-License-Identifier: Apache-2.0

package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

var _ = forEachKind("A burst of claims", func(k kind) {
	DescribeTable("never gets more Machines than the limit, which is reported for the rest",
		func(ctx SpecContext, name string, limit func(*fixture)) {
			f := k.newFixture(name).delays(0, 0, never)
			limit(f)
			f.createReady(ctx)
			machines := f.watchMachines(ctx)
			f.launch(ctx, 12)
			Eventually(ctx, func(g Gomega) {
				claims := f.all(ctx)
				g.Expect(claims).To(HaveLen(2))
				for i := range claims {
					g.Expect(claims[i].DeletionTimestamp).To(BeNil())
					g.Expect(env.machinesOf(ctx, &claims[i])).To(HaveLen(1))
				}
			}).Should(Succeed())
			Expect(machines.everCreated()).To(HaveLen(2))
			Eventually(ctx, func(g Gomega) {
				g.Expect(env.get(ctx, f.template)).To(Succeed())
				g.Expect(f.template.Status.NodeClaims).To(BeEquivalentTo(2))
				g.Expect(f.template.Status.UnavailableOfferings).To(BeEmpty(), "nothing has failed")
			}).Should(Succeed())

			By("deleting one: another can be launched")
			gone := f.all(ctx)[0]
			env.delete(ctx, &gone)
			env.waitGone(ctx, &gone)
			Eventually(ctx, func(g Gomega) {
				g.Expect(env.get(ctx, f.template)).To(Succeed())
				g.Expect(f.template.Status.NodeClaims).To(BeEquivalentTo(1))
			}).Should(Succeed())
			next := f.launchOne(ctx)
			env.waitFor(ctx, next, karpv1.ConditionTypeLaunched)
			env.waitMachine(ctx, next)
		},
		Entry("of the template", "limitedburst", func(f *fixture) { f.template.Spec.MaxMachines = new(int32(2)) }),
		Entry("of its offering", "limitedoffering", func(f *fixture) {
			f.catalog.Spec.InstanceTypes[0].Offerings[0].MaxMachines = new(int32(2))
		}),
		Entry("of its reservation", "reserved", func(f *fixture) {
			offering := &f.catalog.Spec.InstanceTypes[0].Offerings[0]
			offering.CapacityType = karpv1.CapacityTypeReserved
			offering.Reservation = &v1alpha1.Reservation{ID: "cr-1" + k.suffix(), Count: 2} // all templates share the count of an id
		}),
	)
})
