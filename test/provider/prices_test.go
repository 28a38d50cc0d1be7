// SPDX-License-Identifier: Apache-2.0

//go:build provider

package provider

import (
	"context"
	"encoding/json"

	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/cost"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/offers"
	asking "github.com/karpenter-capi/karpenter-capi/test/harness/ask"
)

// With its hardware and prices.yaml, the machine of the user's own is the cheapest one with four CPUs. Its list price is higher than that of the other:
// 200 W cost 200 / 1000 × 1.5 × 0.20 = 0.06 for an hour, and the purchase 1752 / (60 × 730) = 0.04.
const (
	ownType, otherType = "vsphere-vm.cpu-4.mem-32gb.os-ubuntu", "vsphere-vm.cpu-4.mem-16gb.os-ubuntu"

	ownList      = 0.10
	ownPrice     = 0.10*(1-0.50) + 0.01
	otherList    = 4*0.012 + 15800.0/1024*0.002
	otherPrice   = otherList + 0.01
	ownPriceText = "0.06"
)

// price adds hardware and adjustments to the catalog, and expects the offerings to have their prices.
func (v *onVSphere) price(ctx context.Context, g *WithT) {
	v.editCatalog(ctx, g, func(spec *v1alpha1.InstanceTypeCatalogSpec) {
		own := lo.IndexOf(lo.Map(spec.InstanceTypes, func(t v1alpha1.InstanceType, _ int) string { return t.Name }), ownType)
		spec.InstanceTypes[own].Hardware = &v1alpha1.Hardware{Watts: lo.ToPtr[int32](200), PurchasePrice: "1752"}
	})
	for _, object := range objectsIn(g, "prices.yaml") {
		content := object.(*unstructured.Unstructured)
		g.Expect(v.Workload.Apply(ctx, client.ApplyConfigurationFromUnstructured(content), client.FieldOwner("prices"))).To(Succeed())
	}
	v.expectCatalog(ctx, g)
	prices := map[string][]float64{}
	for _, offer := range v.offers(ctx, g) {
		prices[offer.InstanceType] = []float64{offer.ListPricePerHour, offer.PricePerHour}
	}
	g.Expect(prices).To(HaveLen(7), "all instance types: %v", prices)
	for name, want := range map[string][]float64{ownType: {ownList, ownPrice}, otherType: {otherList, otherPrice}} {
		g.Expect(prices[name]).To(HaveExactElements(BeNumerically("~", want[0], 1e-6), BeNumerically("~", want[1], 1e-6)), "list price and price of %s", name)
	}
}

// expectPrices expects all NodeClaims to be of the instance type that is the cheapest with adjustments, and to cost that.
func (v *onVSphere) expectPrices(ctx context.Context, g *WithT) {
	claims := v.claims(ctx, g)
	for i := range claims {
		g.Expect(claims[i].Labels).To(HaveKeyWithValue(corev1.LabelInstanceTypeStable, ownType))
		g.Expect(claims[i].Annotations).To(HaveKeyWithValue(v1alpha1.PriceAnnotation, ownPriceText))
	}
	var costs struct{ Total cost.Row }
	v.ask(ctx, g, &costs, "cost", "general")
	g.Expect(costs.Total.NodeClaims).To(Equal(len(claims)))
	g.Expect(costs.Total.PerHour).To(BeNumerically("~", float64(len(claims))*ownPrice, 1e-6))
	g.Expect(costs.Total.ListPerHour).To(BeNumerically("~", float64(len(claims))*ownList, 1e-6))
}

// editCatalog changes the spec of the catalog.
func (v *onVSphere) editCatalog(ctx context.Context, g *WithT, change func(*v1alpha1.InstanceTypeCatalogSpec)) {
	catalog := &v1alpha1.InstanceTypeCatalog{}
	g.Expect(v.Workload.Get(ctx, client.ObjectKey{Name: "vsphere"}, catalog)).To(Succeed())
	before := catalog.DeepCopy()
	change(&catalog.Spec)
	g.Expect(v.Workload.Patch(ctx, catalog, client.MergeFrom(before))).To(Succeed())
}

// expectCatalog waits until the operator has accepted the present catalog. Its prices must have been adjusted.
func (v *onVSphere) expectCatalog(ctx context.Context, g *WithT) {
	eventually(ctx, g, func(g Gomega) {
		catalog := &v1alpha1.InstanceTypeCatalog{}
		g.Expect(v.Workload.Get(ctx, client.ObjectKey{Name: "vsphere"}, catalog)).To(Succeed())
		valid := catalog.StatusConditions().Get(v1alpha1.ConditionPriceAdjustmentsValid)
		g.Expect(valid.IsTrue()).To(BeTrue(), "%+v", valid)
		g.Expect(valid.ObservedGeneration).To(Equal(catalog.Generation))
	})
}

// offers returns the offerings of the template as the plugin shows them.
func (c *onCloud) offers(ctx context.Context, g Gomega) []offers.Offer {
	var found []offers.Offer
	c.ask(ctx, g, &found, "offerings", "general")
	return found
}

// ask runs a command of the plugin, and reads its answer.
func (c *onCloud) ask(ctx context.Context, g Gomega, into any, arguments ...string) {
	out, messages, err := asking.Run(ctx, c.Stack, append(arguments, "-o", "json")...)
	g.Expect(err).NotTo(HaveOccurred(), messages)
	g.Expect(json.Unmarshal([]byte(out), into)).To(Succeed(), out)
}
