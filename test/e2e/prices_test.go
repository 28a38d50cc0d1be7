// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/cost"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/offers"
	asking "github.com/karpenter-capi/karpenter-capi/test/harness/ask"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
)

// What is paid for the offerings of general.yaml: on demand, small costs 0.08 × 0.5 × 0.25 + 0.01 = 0.02, and as spot
// 0.03 × 0.5 × 2 + 0.01 = 0.04, because each machine is interrupted once in a month, and a month of it is lost then.
const adjustments = `
pricing:
  conversion: {currency: EUR, rate: "0.5"}
  adjustments:
  - name: commitment
    discountPercent: "75"
    requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]
  - {name: interruptions, interruption: {percentPerMonth: "100", costHours: 730}}
  - {name: licenses, surchargePerHour: "0.01"}
`

// Karpenter chooses by what is paid. The plugin shows that, and the list prices. When the adjustments are removed, the next Pod gets
// the offering with the lowest list price, and no Node is replaced.
func TestPrices(t *testing.T) {
	t.Parallel()
	takesTurns(t)
	ctx, s := newStack(t, stack.Options{})
	g := NewWithT(t)
	w := newObserver(ctx, t, s)
	create(ctx, g, s, kinds.MachineDeployment, "general.yaml")
	// adjust applies what a field manager besides that of the price list has in the spec of the catalog.
	adjust := func(content string) {
		t.Helper()
		spec := map[string]any{}
		g.Expect(yaml.Unmarshal([]byte(content), &spec)).To(Succeed())
		object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("InstanceTypeCatalog"))
		object.SetName("general")
		g.Expect(s.Workload.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("prices"))).To(Succeed())
		g.Eventually(ctx, func(g Gomega) {
			catalog := &v1alpha1.InstanceTypeCatalog{}
			g.Expect(s.Workload.Get(ctx, client.ObjectKey{Name: "general"}, catalog)).To(Succeed())
			g.Expect(catalog.StatusConditions().Root().IsTrue()).To(BeTrue(), "%+v", catalog.Status.Conditions)
			g.Expect(catalog.StatusConditions().Root().ObservedGeneration).To(Equal(catalog.Generation), "the operator has seen the change")
		}).WithTimeout(time.Minute).WithPolling(poll).Should(Succeed())
	}
	// expect compares the prices that the plugin shows, by instance type and capacity type.
	expect := func(want map[string]string) {
		t.Helper()
		var found []offers.Offer
		g.Expect(ask(ctx, s, &found, "offerings", "general")).To(Succeed())
		g.Expect(lo.SliceToMap(found, func(o offers.Offer) (string, string) {
			return o.InstanceType + " " + o.CapacityType, number(o.ListPricePerHour) + " " + number(o.PricePerHour)
		})).To(Equal(want), "list price and price")
	}
	// total compares the sum that cost shows.
	total := func(claims int, list, price, currency string) {
		t.Helper()
		var costs struct{ Total cost.Row }
		g.Expect(ask(ctx, s, &costs, "cost", "general")).To(Succeed())
		got := costs.Total
		g.Expect([]string{strconv.Itoa(got.NodeClaims), number(got.ListPerHour), number(got.PerHour), got.Currency}).
			To(Equal([]string{strconv.Itoa(claims), list, price, currency}))
	}
	// text expects what offerings and cost print.
	text := func(matching ...types.GomegaMatcher) {
		t.Helper()
		for i, command := range []string{"offerings", "cost"} {
			out, messages, err := asking.Run(ctx, s, command, "general")
			g.Expect(err).NotTo(HaveOccurred(), messages)
			g.Expect(out).To(matching[i])
		}
	}

	adjust(adjustments)
	expect(map[string]string{"small on-demand": "0.04 0.02", "small spot": "0.015 0.04", "medium on-demand": "0.08 0.03", "medium spot": "0.03 0.07"})
	g.Expect(runAlone(ctx, g, s, "first").String()).To(Equal("small/zone-a/on-demand"))
	claims := &karpv1.NodeClaimList{}
	g.Expect(s.Workload.List(ctx, claims)).To(Succeed())
	g.Expect(claims.Items).To(HaveExactElements(HaveField("Annotations", HaveKeyWithValue(v1alpha1.PriceAnnotation, "0.02"))))
	total(1, "0.04", "0.02", "EUR")
	text(And(ContainSubstring("LIST/H"), ContainSubstring("Prices are in EUR.")), ContainSubstring("LIST/MONTH"))

	adjust("{}")
	expect(map[string]string{"small on-demand": "0.08 0.08", "small spot": "0.03 0.03", "medium on-demand": "0.16 0.16", "medium spot": "0.06 0.06"})
	g.Expect(runAlone(ctx, g, s, "second").String()).To(Equal("small/zone-b/spot"))
	total(2, "0.11", "0.11", "")
	text(Not(ContainSubstring("LIST")), Not(ContainSubstring("LIST")))
	g.Expect(w.everDrifted()).To(BeEmpty(), "a price is no part of a machine")
	removeAll(ctx, g, s)
}

// number formats a price without the errors of floating point numbers.
func number(price float64) string { return strconv.FormatFloat(price, 'g', 6, 64) }
