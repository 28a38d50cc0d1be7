// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
)

// Pods get Nodes of three instance types in equal shares. Karpenter's consolidation looks at all of them and replaces none. Without
// spec.spread, it replaces those that cost more.
func TestSpread(t *testing.T) {
	t.Parallel()
	takesTurns(t)
	ctx, s := newStack(t, stack.Options{})
	forEachKind(ctx, t, s, func(g *WithT, kind kinds.Kind) {
		create(ctx, g, s, kind, "spread.yaml")
		shares := func(g Gomega) map[string]int {
			return lo.CountValuesBy(nodesOf(ctx, g, s, "spread"), func(node corev1.Node) string { return node.Labels[corev1.LabelInstanceTypeStable] })
		}
		// allow changes how many Nodes can be disrupted. If a NodePool changes, Karpenter considers its Nodes within seconds.
		// If its NodeClaims become consolidatable, or prices change, it does so within five minutes.
		allow := func(nodes string) {
			pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "spread"}}
			budget := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"disruption":{"budgets":[{"nodes":%q}]}}}`, nodes))
			g.Expect(s.Workload.Patch(ctx, pool, budget)).To(Succeed())
		}

		want := map[string]int{"one": 2, "two": 2, "three": 2}
		g.Eventually(ctx, shares).WithTimeout(2*time.Minute).WithPolling(poll).Should(Equal(want), "Nodes of each instance type")
		var before []karpv1.NodeClaim
		g.Eventually(ctx, func(g Gomega) {
			before = claimsOf(ctx, g, s, "spread")
			for i := range before {
				g.Expect(before[i].StatusConditions().Get(karpv1.ConditionTypeConsolidatable).IsTrue()).To(BeTrue(), before[i].Name)
			}
		}).WithTimeout(2*time.Minute).WithPolling(poll).Should(Succeed(), "all are consolidatable")
		// Karpenter leaves out a Node that was nominated for a Pod in the last 20 seconds, and looks again only if something changes.
		atMost := len(before)
		g.Eventually(ctx, func(g Gomega) {
			allow(strconv.Itoa(atMost))
			atMost++
			for _, name := range names(before) {
				published := &corev1.EventList{}
				g.Expect(s.Workload.List(ctx, published, client.MatchingFields{"involvedObject.name": name, "reason": events.Unconsolidatable})).To(Succeed())
				g.Expect(published.Items).To(ContainElement(HaveField("Message", ContainSubstring("Can't replace with a cheaper node"))), name)
			}
		}).WithTimeout(2*time.Minute).WithPolling(10*time.Second).Should(Succeed(), "consolidation considers each Node")
		now := claimsOf(ctx, g, s, "spread")
		g.Expect(names(now)).To(ConsistOf(names(before)))
		g.Expect(now).To(HaveEach(HaveField("DeletionTimestamp", BeNil())))

		template := &v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "spread"}}
		g.Expect(s.Workload.Patch(ctx, template, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"spread":null}}`)))).To(Succeed())
		g.Eventually(ctx, func(g Gomega) {
			g.Expect(s.Workload.Get(ctx, client.ObjectKeyFromObject(template), template)).To(Succeed())
			g.Expect(template.StatusConditions().Root().ObservedGeneration).To(Equal(template.Generation))
		}).WithTimeout(2*time.Minute).WithPolling(poll).Should(Succeed(), "the operator knows the change")
		allow("50%")
		g.Eventually(ctx, shares).WithTimeout(3*time.Minute).WithPolling(poll).Should(HaveKeyWithValue("one", BeNumerically(">", 2)), "consolidation replaces Nodes that cost more")
	})
}
