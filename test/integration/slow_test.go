// SPDX-License-Identifier: Apache-2.0

package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

var _ = forEachKind("A slow offering", func(k kind) {
	It("delays neither a fast one nor Karpenter's view of the cluster", func(ctx SpecContext) {
		slow := k.newFixture("slow").delays(never, never, 0).createReady(ctx)
		fast := k.newFixture("fast").createReady(ctx)

		waiting := slow.launchOne(ctx)
		env.waitFor(ctx, waiting, karpv1.ConditionTypeLaunched)
		env.waitMachine(ctx, waiting)
		Eventually(ctx, func() bool { return env.state.Synced(ctx) }).Should(BeTrue())

		claims := fast.launch(ctx, 3)
		for _, claim := range claims {
			env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		}
		Expect(env.state.Synced(ctx)).To(BeTrue())
		Expect(env.providerID(ctx, waiting)).To(Equal(provisionalID(waiting)))
		Expect(waiting.StatusConditions().Get(karpv1.ConditionTypeRegistered).IsTrue()).To(BeFalse())
	})
})
