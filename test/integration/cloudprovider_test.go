// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"net/http"

	"github.com/awslabs/operatorpkg/status"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	core "sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/cloudprovider"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
)

var _ = forEachKind("CloudProvider", func(k kind) {
	It("finds claims by provisional and by real provider IDs", func(ctx SpecContext) {
		provider := env.cloudProvider()
		slow := k.newFixture("get-slow").delays(never, never, 0).createReady(ctx)
		fast := k.newFixture("get-fast").delays(0, 0, never).createReady(ctx)
		booting, running, waiting := slow.launchOne(ctx), fast.launchOne(ctx), slow.newClaim()
		env.waitMachine(ctx, booting)
		env.waitMachine(ctx, running)
		Eventually(ctx, func() string { return env.providerID(ctx, running) }).Should(HavePrefix("sim://"))
		slow.launchPaused(ctx, waiting)

		By("getting claims")
		for id, claim := range map[string]*karpv1.NodeClaim{
			provisionalID(booting):    booting,
			provisionalID(running):    running,
			running.Status.ProviderID: running,
			provisionalID(waiting):    waiting,
		} {
			Eventually(ctx, func(g Gomega) {
				found, err := provider.Get(ctx, id)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(found.UID).To(Equal(claim.UID))
				g.Expect(found.Name).To(Equal(claim.Name))
				g.Expect(found.Status.ProviderID).To(Equal(env.providerID(ctx, claim)))
				g.Expect(found.DeletionTimestamp).To(BeNil())
			}).Should(Succeed(), id)
		}
		for _, id := range []string{"", "sim://unknown", planner.ProvisionalID("unknown")} {
			_, err := provider.Get(ctx, id)
			Expect(core.IsNodeClaimNotFoundError(err)).To(BeTrue(), "%q: %v", id, err)
		}

		By("listing claims")
		list := func() map[types.UID]*karpv1.NodeClaim {
			claims, err := provider.List(ctx)
			Expect(err).NotTo(HaveOccurred())
			return lo.KeyBy(claims, func(c *karpv1.NodeClaim) types.UID { return c.UID })
		}
		Eventually(ctx, list).Should(And(HaveKey(booting.UID), HaveKey(running.UID), Not(HaveKey(waiting.UID))))
		Expect(list()[booting.UID].Status.ProviderID).To(Equal(provisionalID(booting)))
		Expect(list()[running.UID].Status.ProviderID).To(Equal(running.Status.ProviderID))

		By("deleting a claim")
		release := env.hold(ctx, env.waitMachine(ctx, running))
		env.delete(ctx, running)
		for _, id := range []string{provisionalID(running), running.Status.ProviderID} {
			Eventually(ctx, func() *metav1.Time {
				found, err := provider.Get(ctx, id)
				Expect(err).NotTo(HaveOccurred())
				return found.DeletionTimestamp
			}).ShouldNot(BeNil(), id)
		}
		Expect(list()[running.UID].DeletionTimestamp).NotTo(BeNil())
		release(ctx)
		env.waitGone(ctx, running)
		for _, id := range []string{provisionalID(running), running.Status.ProviderID} {
			_, err := provider.Get(ctx, id)
			Expect(core.IsNodeClaimNotFoundError(err)).To(BeTrue(), "%q: %v", id, err)
		}
		Expect(list()).NotTo(HaveKey(running.UID))
		Expect(core.IsNodeClaimNotFoundError(provider.Delete(ctx, running))).To(BeTrue())
		env.annotate(ctx, slow.resource(ctx).API(), clusterv1.PausedAnnotation, nil)
	})

	It("sends no request when it creates claims", func(ctx SpecContext) {
		f := k.newFixture("create").createReady(ctx)
		broken := k.newFixture("create-broken")
		broken.template.Spec.CatalogRefs = nil
		broken.create(ctx)
		Eventually(ctx, func() bool { return broken.condition(ctx, status.ConditionReady).IsFalse() }).Should(BeTrue())

		// A second operator, with its own clients and caches and without controllers.
		requests := &requestLog{}
		running, stop := context.WithCancel(context.Background())
		DeferCleanup(stop)
		running, op := env.newOperator(running, requests)
		env.start(running, op)
		for _, object := range []client.Object{&v1alpha1.KarpenterMachineTemplate{}, &v1alpha1.InstanceTypeCatalog{}} {
			_, err := op.GetCache().GetInformer(ctx, object)
			Expect(err).NotTo(HaveOccurred())
		}
		provider := cloudprovider.New(op.Clusters, catalog.New(op.Clusters), clock.RealClock{})

		calls := func() {
			fits := f.newClaim()
			fits.UID = types.UID(fits.Name)
			created, err := provider.Create(ctx, fits)
			Expect(err).NotTo(HaveOccurred())
			Expect(created.Status.ProviderID).To(Equal(planner.ProvisionalID(fits.UID)))
			Expect(created.Annotations).To(HaveKey(v1alpha1.ScalableResourceAnnotation))

			tooLarge := f.newClaim()
			tooLarge.Spec.Resources.Requests = f.catalog.Spec.InstanceTypes[0].Capacity
			_, err = provider.Create(ctx, tooLarge)
			Expect(core.IsInsufficientCapacityError(err)).To(BeTrue(), "%v", err)
			_, err = provider.Create(ctx, broken.newClaim())
			Expect(core.IsNodeClassNotReadyError(err)).To(BeTrue(), "%v", err)
		}
		mark := requests.mark()
		for range 100 {
			calls()
		}
		// Watches keep the caches up to date, even without reads.
		Expect(requests.since(mark, func(r request) bool { return r.method != http.MethodGet || !r.watch })).To(BeEmpty())
		Expect(mark).To(BeNumerically(">", 0), "requests that filled the caches")
	})
})
