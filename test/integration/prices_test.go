// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/plugin"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

// applyPrices applies a part of the fixture's catalog as a field manager.
func (f *fixture) applyPrices(ctx context.Context, manager string, spec v1alpha1.InstanceTypeCatalogSpec) {
	GinkgoHelper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
	Expect(err).NotTo(HaveOccurred())
	object := &unstructured.Unstructured{Object: map[string]any{"spec": content}}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.CatalogKind))
	object.SetName(f.name)
	Expect(env.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(manager), client.ForceOwnership)).To(Succeed())
}

// prices returns what Karpenter compares, by instance type.
func (f *fixture) prices(ctx context.Context) map[string]float64 {
	GinkgoHelper()
	instanceTypes, err := env.cloudProvider().GetInstanceTypes(ctx, f.pool)
	Expect(err).NotTo(HaveOccurred())
	prices := map[string]float64{}
	for _, it := range instanceTypes {
		prices[it.Name] = it.Offerings[0].Price
	}
	return prices
}

var _ = Describe("Adjustments of prices", func() {
	// licenses makes the cheap type expensive.
	licenses := func(surcharge v1alpha1.Decimal) v1alpha1.InstanceTypeCatalogSpec {
		return v1alpha1.InstanceTypeCatalogSpec{Pricing: &v1alpha1.CatalogPricing{Adjustments: []v1alpha1.PriceAdjustment{{
			Name: "licenses", SurchargePerHour: surcharge,
			Requirements: []v1alpha1.OfferingRequirement{{Key: corev1.LabelInstanceTypeStable, Operator: v1alpha1.RequirementIn, Values: []v1alpha1.LabelValue{cheap}}},
		}}}}
	}

	It("make Karpenter choose another instance type, stay when the list is refreshed, and disturb no Node", func(ctx SpecContext) {
		f := machineDeployments.newFixture("adjusted").withCheapMachines(ctx, func(*infrav1.SimulatedMachineSpec) {}).createReady(ctx)
		Expect(f.prices(ctx)).To(Equal(map[string]float64{instanceType: 0.1, cheap: 0.01}))

		By("adding a surcharge for the cheap one")
		f.applyPrices(ctx, "prices", licenses("0.5"))
		Eventually(ctx, func() map[string]float64 { return f.prices(ctx) }).Should(Equal(map[string]float64{instanceType: 0.1, cheap: 0.51}))
		env.createPod(ctx, f.newPod())
		Eventually(ctx, func() []karpv1.NodeClaim { return f.all(ctx) }).Should(HaveLen(1))
		claim := f.all(ctx)[0].DeepCopy()
		env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		Expect(claim.Labels).To(HaveKeyWithValue(corev1.LabelInstanceTypeStable, instanceType))

		By("refreshing the list as the plugin does")
		refreshed := v1alpha1.InstanceTypeCatalogSpec{InstanceTypes: f.catalog.DeepCopy().Spec.InstanceTypes}
		refreshed.InstanceTypes[0].Offerings[0].Price, refreshed.InstanceTypes[1].Offerings[0].Price = "0.2", "0.02"
		f.applyPrices(ctx, plugin.FieldOwner, refreshed)
		Eventually(ctx, func() map[string]float64 { return f.prices(ctx) }).Should(Equal(map[string]float64{instanceType: 0.2, cheap: 0.52}))
		Eventually(ctx, func(g Gomega) {
			g.Expect(env.get(ctx, f.catalog)).To(Succeed())
			g.Expect(f.catalog.Spec.Pricing).To(Equal(licenses("0.5").Pricing))
			g.Expect(f.catalog.StatusConditions().Get(v1alpha1.ConditionPriceAdjustmentsValid).IsTrue()).To(BeTrue())
		}).Should(Succeed())

		By("changing the surcharge when the cluster is settled")
		env.waitReplicas(ctx, f, 1)
		f.waitCounted(ctx, 1)
		env.waitQuiet(ctx, f)
		mark, versions := env.requests.mark(), env.versions(ctx)
		f.applyPrices(ctx, "prices", licenses("0.6"))
		Eventually(ctx, func() map[string]float64 { return f.prices(ctx) }).Should(Equal(map[string]float64{instanceType: 0.2, cheap: 0.62}))
		reason, err := env.cloudProvider().IsDrifted(ctx, claim)
		Expect(err).NotTo(HaveOccurred())
		Expect(reason).To(BeEmpty())
		env.waitQuiet(ctx, f)
		Expect(env.requests.since(mark, func(r request) bool { return r.write() && !strings.Contains(r.path, "instancetypecatalogs") })).To(BeEmpty(), "writes of the operator")
		Expect(env.versions(ctx)).To(Equal(versions))

		By("removing the adjustment, and adding one that has no effect")
		f.applyPrices(ctx, "prices", v1alpha1.InstanceTypeCatalogSpec{Pricing: &v1alpha1.CatalogPricing{Adjustments: []v1alpha1.PriceAdjustment{{
			Name: "typo", DiscountPercent: "5", Requirements: []v1alpha1.OfferingRequirement{{Key: corev1.LabelTopologyZone, Operator: v1alpha1.RequirementIn, Values: []v1alpha1.LabelValue{"zone-z"}}},
		}}}})
		Eventually(ctx, func() map[string]float64 { return f.prices(ctx) }).Should(Equal(map[string]float64{instanceType: 0.2, cheap: 0.02}))
		Eventually(ctx, func(g Gomega) {
			g.Expect(env.get(ctx, f.catalog)).To(Succeed())
			found := f.catalog.StatusConditions().Get(v1alpha1.ConditionPriceAdjustmentsValid)
			g.Expect(found.IsFalse()).To(BeTrue())
			g.Expect(found.Message).To(ContainSubstring("adjustment typo: no offering meets its requirements"))
			g.Expect(f.catalog.StatusConditions().Root().IsTrue()).To(BeTrue(), "Ready")
		}).Should(Succeed())
		Expect(f.condition(ctx, v1alpha1.ConditionOfferingsValid).IsTrue()).To(BeTrue())
	})
})
