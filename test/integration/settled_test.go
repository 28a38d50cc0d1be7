// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/link"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/scalableresource"
)

var _ = forEachKind("A settled cluster", func(k kind) {
	It("is not written to, by the running operator or by one that starts", func(ctx SpecContext) {
		f := k.newFixture("settled").createReady(ctx)
		claims := f.launch(ctx, 20)
		for _, claim := range claims {
			env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		}
		env.waitReplicas(ctx, f, len(claims))
		f.waitCounted(ctx, len(claims))
		env.waitQuiet(ctx, f)

		By("letting the running operator reconcile everything again")
		resource := f.resource(ctx)
		mark := env.requests.mark()
		for controller, object := range map[string]client.Object{"capi.machinetemplate": f.template, "capi.scalableresource": resource.API()} {
			before := reconciles(controller)
			touch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"integration.test/touched-for":%q}}}`, controller))
			Expect(env.client.Patch(ctx, object, touch)).To(Succeed())
			Eventually(ctx, func() uint64 { return reconciles(controller) }).Should(BeNumerically(">", before), controller)
		}
		env.waitQuiet(ctx, f)
		Expect(env.requests.since(mark, request.write)).To(BeEmpty(), "writes of the operator")
		versions := env.versions(ctx)

		By("starting a fresh operator")
		requests := &requestLog{}
		running, stop := context.WithCancel(context.Background())
		DeferCleanup(stop)
		running, op := env.newOperator(running, requests)
		env.start(running, op)
		again := reconcile.Request{NamespacedName: types.NamespacedName{Name: resource.GetName()}}
		known, links := catalog.New(op.Clusters), link.NewReconciler(op.Clusters, op.EventRecorder)
		_, err := scalableresource.NewReconciler(op.Clusters, known, links, op.EventRecorder, clock.RealClock{}, env.state.PodsMappedToNodeClaim).Reconcile(running, again)
		Expect(err).NotTo(HaveOccurred())
		Expect(requests.since(0, request.write)).To(BeEmpty(), "writes of a fresh operator")
		Expect(env.versions(ctx)).To(Equal(versions))
	})
})
