// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/nodeclaim"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/scalableresource"
)

var _ = forEachKind("A settled cluster", func(k kind) {
	It("is not written to, by the running operator or by one that starts", func(ctx SpecContext) {
		f := k.newFixture("settled").createReady(ctx)
		for _, claim := range f.launch(ctx, 20) {
			env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		}
		env.waitReplicas(ctx, f, 20)
		env.waitQuiet(ctx, f)

		versions, mark := env.versions(ctx), env.requests.mark()
		Consistently(ctx, func() map[string]string { return env.versions(ctx) }).WithTimeout(2 * still).Should(Equal(versions))
		Expect(env.requests.since(mark, request.write)).To(BeEmpty(), "writes of the operator")

		By("starting anew")
		requests := &requestLog{}
		running, stop := context.WithCancel(context.Background())
		DeferCleanup(stop)
		running, op := env.newOperator(running, requests)
		env.start(running, op)
		again := reconcile.Request{NamespacedName: types.NamespacedName{Name: f.resource(ctx).GetName()}}
		for _, reconciler := range []reconcile.Reconciler{
			scalableresource.NewReconciler(op.Clusters, catalog.New(op.Clusters), op.EventRecorder, clock.RealClock{}),
			nodeclaim.NewReconciler(op.Clusters, catalog.New(op.Clusters), nil, op.EventRecorder, clock.RealClock{}, env.state.PodsMappedToNodeClaim),
		} {
			_, err := reconciler.Reconcile(running, again)
			Expect(err).NotTo(HaveOccurred())
		}
		Expect(requests.since(0, request.write)).To(BeEmpty(), "writes of a fresh operator")
		Expect(env.versions(ctx)).To(Equal(versions))
	})
})
