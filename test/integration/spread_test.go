// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// zones returns how many launched claims of the fixture each zone has.
func (f *fixture) zones(ctx context.Context) map[string]int {
	GinkgoHelper()
	return lo.CountValuesBy(f.all(ctx), func(claim karpv1.NodeClaim) string {
		return lo.Ternary(claim.StatusConditions().Get(karpv1.ConditionTypeLaunched).IsTrue(), claim.Labels[corev1.LabelTopologyZone], "not launched")
	})
}

var _ = Describe("Offerings that take turns", func() {
	const second = "another"

	It("have equal shares of a burst, and cost the same for Karpenter", func(ctx SpecContext) {
		f := machineDeployments.newFixture("turns").delays(0, 0, never)
		offerings := &f.catalog.Spec.InstanceTypes[0].Offerings
		*offerings = append(*offerings, v1alpha1.Offering{Zones: []v1alpha1.Zone{second}, CapacityType: karpv1.CapacityTypeOnDemand, Price: "0.11"})
		f.template.Spec.Spread = []v1alpha1.Spread{{CapacityType: karpv1.CapacityTypeOnDemand, MaxPriceIncreasePercent: new(int32(20))}}
		f.createReady(ctx)
		instanceTypes, err := env.cloudProvider().GetInstanceTypes(ctx, f.pool)
		Expect(err).NotTo(HaveOccurred())
		Expect(instanceTypes).To(HaveLen(1))
		for _, offering := range instanceTypes[0].Offerings {
			Expect(offering.Price).To(Equal(0.1), offering.Zone())
		}

		f.launch(ctx, 6)
		Eventually(ctx, func() map[string]int { return f.zones(ctx) }).Should(Equal(map[string]int{zone: 3, second: 3}))
		for _, claim := range f.all(ctx) {
			paid := map[string]string{zone: "0.1", second: "0.11"}[claim.Labels[corev1.LabelTopologyZone]]
			Expect(claim.Annotations).To(HaveKeyWithValue(v1alpha1.PriceAnnotation, paid))
		}
		Eventually(ctx, func(g Gomega) { g.Expect(f.machines(ctx)).To(HaveLen(6)) }).Should(Succeed())

		By("removing spec.spread: the next ones get the cheapest offering, and no Node is replaced")
		env.change(ctx, f.template, func() { f.template.Spec.Spread = nil })
		f.launch(ctx, 2)
		Eventually(ctx, func() map[string]int { return f.zones(ctx) }).Should(Equal(map[string]int{zone: 5, second: 3}))
		for _, claim := range f.all(ctx) {
			reason, err := env.cloudProvider().IsDrifted(ctx, &claim)
			Expect(err).NotTo(HaveOccurred())
			Expect(reason).To(BeEmpty(), claim.Name)
		}
	})
})
