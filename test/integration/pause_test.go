// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/cloudprovider"
)

// cloudProvider returns one that works on the operator's caches.
func (e *environment) cloudProvider() *cloudprovider.CloudProvider {
	return cloudprovider.New(e.operator.Clusters, catalog.New(e.operator.Clusters), clock.RealClock{})
}

// launchPaused makes a claim whose scalable resource, which exists, is paused, so
// that no Machine is asked for. A paused resource is not offered, so the claim comes
// in the moment before that is known; should that be missed, it is done again.
func (f *fixture) launchPaused(ctx context.Context, claim *karpv1.NodeClaim) {
	GinkgoHelper()
	const known = 3 * time.Second
	fresh := claim.DeepCopy()
	for range 5 {
		env.annotate(ctx, f.resource(ctx).API(), clusterv1.PausedAnnotation, nil)
		Eventually(ctx, func() bool { return f.available(ctx, instanceType) }).Should(BeTrue())
		env.annotate(ctx, f.resource(ctx).API(), clusterv1.PausedAnnotation, new(""))
		*claim = *fresh.DeepCopy()
		Expect(env.client.Create(ctx, claim)).To(Succeed())
		launched := func() bool {
			return env.exists(ctx, claim) && claim.StatusConditions().Get(karpv1.ConditionTypeLaunched).IsTrue()
		}
		if ok := NewGomega(func(string, ...int) {}).Eventually(ctx, launched).WithTimeout(known).Should(BeTrue()); ok {
			return
		}
		env.waitGone(ctx, claim)
	}
	Fail("the claim was never launched")
}

var _ = forEachKind("A pause", func(k kind) {
	It("of the Cluster stops everything, and afterwards everything continues", func(ctx SpecContext) {
		f := k.newFixture("pausedcluster").createReady(ctx)
		claims := f.launch(ctx, 3)
		for _, claim := range claims {
			env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		}
		machines := f.watchMachines(ctx)

		env.pauseCluster(ctx, true)
		DeferCleanup(func(ctx SpecContext) { env.pauseCluster(ctx, false) })
		Eventually(ctx, func() string { return f.condition(ctx, v1alpha1.ConditionClusterReady).Reason }).Should(Equal(v1alpha1.ReasonClusterPaused))
		Eventually(ctx, func() bool {
			Expect(env.get(ctx, f.pool)).To(Succeed())
			return f.pool.StatusConditions().Root().IsTrue()
		}).Should(BeFalse(), "the NodePool, of which nothing can be launched")

		By("deleting a claim and making another meanwhile")
		machine := env.waitMachine(ctx, claims[0])
		env.delete(ctx, claims[0])
		refused := f.launchOne(ctx)
		Consistently(ctx, func(g Gomega) {
			g.Expect(env.get(ctx, machine)).To(Succeed())
			g.Expect(machine.DeletionTimestamp).To(BeNil())
			g.Expect(machine.Annotations).NotTo(HaveKey(v1alpha1.LeavingSinceAnnotation))
			g.Expect(env.exists(ctx, claims[0])).To(BeTrue(), "its claim waits")
			g.Expect(f.resource(ctx).Replicas()).To(BeEquivalentTo(3))
		}).WithTimeout(deleteInterval + time.Second).Should(Succeed())
		Expect(env.exists(ctx, refused)).To(BeFalse(), "a claim that cannot be launched goes, for Karpenter to try again")

		By("going on")
		env.pauseCluster(ctx, false)
		env.waitGone(ctx, claims[0])
		Expect(env.exists(ctx, machine)).To(BeFalse())
		f.waitReady(ctx)
		next := f.launchOne(ctx)
		env.waitFor(ctx, next, karpv1.ConditionTypeInitialized)
		env.waitReplicas(ctx, f, 3)
		Expect(machines.everDeleted()).To(ConsistOf(machine.Name))
	})

	It("of a scalable resource takes its offering off the list, and nobody else's", func(ctx SpecContext) {
		f := k.newFixture("pausedresource").withCheap(ctx, nil).createReady(ctx)
		claim := f.launchOne(ctx)
		env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		env.annotate(ctx, f.resource(ctx).API(), clusterv1.PausedAnnotation, new(""))
		Eventually(ctx, func() bool { return f.available(ctx, instanceType) }).Should(BeFalse())
		Expect(f.available(ctx, cheap)).To(BeTrue())
		env.delete(ctx, claim)
		Consistently(ctx, func() bool { return env.exists(ctx, claim) }).Should(BeTrue())
		env.annotate(ctx, f.resource(ctx).API(), clusterv1.PausedAnnotation, nil)
		Eventually(ctx, func() bool { return f.available(ctx, instanceType) }).Should(BeTrue())
		env.waitGone(ctx, claim)
		env.waitReplicas(ctx, f, 0)
	})
})
