// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/cloudprovider"
)

// cloudProvider returns one that works on the operator's caches.
func (e *environment) cloudProvider() *cloudprovider.CloudProvider {
	return cloudprovider.New(e.operator.Clusters, catalog.New(e.operator.Clusters), clock.RealClock{})
}

// launchPaused creates a claim whose scalable resource exists and is paused, so that no Machine is
// requested. A paused resource is not offered, so the claim is launched before the pause, while the
// resource's replicas cannot be raised.
func (f *fixture) launchPaused(ctx context.Context, claim *karpv1.NodeClaim) {
	GinkgoHelper()
	resource := f.resource(ctx).API()
	raise := f.refuseRaises(ctx)
	Expect(env.client.Create(ctx, claim)).To(Succeed())
	env.waitFor(ctx, claim, karpv1.ConditionTypeLaunched)
	env.annotate(ctx, resource, clusterv1.PausedAnnotation, new(""))
	// The operator's caches have it now.
	Eventually(ctx, func() bool { return f.available(ctx, instanceType) }).Should(BeFalse())
	env.delete(ctx, raise)
	// It must be the pause that prevents a raise, and not the webhook or the delay of a retry.
	higher := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":1000}}`))
	Eventually(ctx, func() error { return env.client.Patch(ctx, f.resource(ctx).API(), higher, client.DryRunAll) }).Should(Succeed())
	Expect(env.touch(ctx, resource)).To(Succeed())
}

// refuseRaises rejects higher replicas of the fixture's scalable resources, with a webhook that
// does not respond, until the returned object is deleted.
func (f *fixture) refuseRaises(ctx context.Context) client.Object {
	GinkgoHelper()
	webhook := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: f.name},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:                    f.name + ".integration.test",
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1:1")},
			ObjectSelector:          &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.TemplateLabel: f.name}},
			MatchConditions:         []admissionregistrationv1.MatchCondition{{Name: "raises", Expression: "object.spec.replicas > oldObject.spec.replicas"}},
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{clusterv1.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"machinedeployments", "machinepools"}},
			}},
		}},
	}
	Expect(env.client.Create(ctx, webhook)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(env.client.Delete(ctx, webhook))).To(Succeed()) })
	// The API server uses it as soon as it has seen it.
	resource := f.resource(ctx).API()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":100}}`))
	Eventually(ctx, func() error { return env.client.Patch(ctx, resource, patch, client.DryRunAll) }).
		Should(MatchError(ContainSubstring("failed calling webhook")))
	return webhook
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

		By("deleting a claim and creating another in the meantime")
		machine := env.waitMachine(ctx, claims[0])
		env.delete(ctx, claims[0])
		refused := f.launchOne(ctx)
		// Core calls CloudProvider.Delete again after deleteInterval.
		Consistently(ctx, func(g Gomega) {
			g.Expect(env.get(ctx, machine)).To(Succeed())
			g.Expect(machine.DeletionTimestamp).To(BeNil())
			g.Expect(machine.Annotations).NotTo(HaveKey(v1alpha1.MarkedForDeletionAtAnnotation))
			g.Expect(env.exists(ctx, claims[0])).To(BeTrue(), "its claim waits")
			g.Expect(f.resource(ctx).Replicas()).To(BeEquivalentTo(3))
		}).WithTimeout(deleteInterval + time.Second).Should(Succeed())
		Expect(env.exists(ctx, refused)).To(BeFalse(), "a claim that cannot be launched is deleted, so that Karpenter tries again")

		By("resuming")
		env.pauseCluster(ctx, false)
		env.waitGone(ctx, claims[0])
		Expect(env.exists(ctx, machine)).To(BeFalse())
		f.waitReady(ctx)
		next := f.launchOne(ctx)
		env.waitFor(ctx, next, karpv1.ConditionTypeInitialized)
		env.waitReplicas(ctx, f, 3)
		Expect(machines.everDeleted()).To(ConsistOf(machine.Name))
	})

	It("of a scalable resource makes only its offering unavailable", func(ctx SpecContext) {
		f := k.newFixture("pausedresource").withCheap(ctx, nil).createReady(ctx)
		claim := f.launchOne(ctx)
		env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		env.annotate(ctx, f.resource(ctx).API(), clusterv1.PausedAnnotation, new(""))
		Eventually(ctx, func() bool { return f.available(ctx, instanceType) }).Should(BeFalse())
		Expect(f.available(ctx, cheap)).To(BeTrue())
		env.delete(ctx, claim)
		f.caughtUp(ctx)
		Expect(env.exists(ctx, claim)).To(BeTrue())
		env.annotate(ctx, f.resource(ctx).API(), clusterv1.PausedAnnotation, nil)
		Eventually(ctx, func() bool { return f.available(ctx, instanceType) }).Should(BeTrue())
		env.waitGone(ctx, claim)
		env.waitReplicas(ctx, f, 0)
	})
})
