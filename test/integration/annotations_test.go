// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

var _ = forEachKind("A claim that loses the annotations of this operator", func(k kind) {
	lose := func(name string, nodeJoin time.Duration, until string) func(SpecContext) {
		return func(ctx SpecContext) {
			f := k.newFixture(name).delays(0, 0, nodeJoin).createReady(ctx)
			machines := f.watchMachines(ctx)
			claim := f.launchOne(ctx)
			machine := env.waitMachine(ctx, claim)
			env.waitFor(ctx, claim, until)
			before := claim.GetAnnotations()
			keys := []string{v1alpha1.ScalableResourceAnnotation, v1alpha1.TemplateHashAnnotation, v1alpha1.TemplateRevisionAnnotation, v1alpha1.PriceAnnotation}
			env.change(ctx, claim, func() {
				for _, key := range keys {
					Expect(claim.Annotations).To(HaveKey(key))
					delete(claim.Annotations, key)
				}
			})
			Eventually(ctx, func(g Gomega) {
				g.Expect(env.get(ctx, claim)).To(Succeed())
				for _, key := range keys {
					g.Expect(claim.Annotations).To(HaveKeyWithValue(key, before[key]))
				}
			}).Should(Succeed())
			env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
			Expect(env.waitMachine(ctx, claim).UID).To(Equal(machine.UID))
			Expect(machines.everCreated()).To(ConsistOf(machine.Name))
		}
	}
	It("keeps its Machine with a Node, and gets them back", lose("forgets", 0, karpv1.ConditionTypeInitialized))
	It("keeps its Machine without a Node, and gets them back", lose("forgets-early", 3*time.Second, karpv1.ConditionTypeLaunched))
})
