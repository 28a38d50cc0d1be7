// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"

	"github.com/awslabs/operatorpkg/status"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

var _ = forEachKind("A claim whose template changes before its scalable resource is created", func(k kind) {
	// launchHeld returns a claim that waits for its scalable resource, which was deleted and cannot
	// be created yet, because one with the same name is still being deleted.
	launchHeld := func(ctx context.Context, f *fixture) (claim *karpv1.NodeClaim, old *scalable.Resource, release func(context.Context)) {
		GinkgoHelper()
		old = f.createResource(ctx)
		release = env.hold(ctx, old.API())
		env.delete(ctx, old.API())
		claim = f.launchOne(ctx)
		env.waitFor(ctx, claim, karpv1.ConditionTypeLaunched)
		Expect(claim.Annotations).To(HaveKeyWithValue(v1alpha1.ScalableResourceAnnotation, old.GetName()))
		return claim, old, release
	}

	It("gets the current one of its offering", func(ctx SpecContext) {
		f := k.newFixture("moved").delays(0, 0, never).createReady(ctx)
		claim, old, release := launchHeld(ctx, f)
		env.change(ctx, f.template, func() { f.template.Spec.Template.Spec.Version = "v1.36.3" })
		Eventually(ctx, func() bool {
			return f.condition(ctx, status.ConditionReady).ObservedGeneration == f.template.Generation
		}).Should(BeTrue(), "the change was seen")
		release(ctx)
		env.waitMachine(ctx, claim)
		resource := f.resource(ctx)
		Expect(resource.MachineTemplate().Spec.Version).To(Equal("v1.36.3"))
		Expect(resource.GetName()).NotTo(Equal(old.GetName()))
		Expect(env.get(ctx, claim)).To(Succeed())
		Expect(claim.Annotations).To(HaveKeyWithValue(v1alpha1.ScalableResourceAnnotation, resource.GetName()))
		Expect(claim.Annotations).To(HaveKeyWithValue(v1alpha1.TemplateHashAnnotation, resource.GetLabels()[v1alpha1.TemplateHashLabel]))
		Expect(claim.Annotations).To(HaveKeyWithValue(v1alpha1.TemplateRevisionAnnotation, catalog.RevisionOf(f.template)), "its Node reports the capacity of the type")
		Expect(env.machinesOf(ctx, claim)).To(HaveLen(1))
	})

	It("is deleted, with an event, if its offering was removed", func(ctx SpecContext) {
		f := k.newFixture("gone").delays(0, 0, never).createReady(ctx)
		machines := f.watchMachines(ctx)
		claim, _, release := launchHeld(ctx, f)
		env.change(ctx, f.catalog, func() { f.catalog.Spec.InstanceTypes[0].Offerings[0].Zones = []v1alpha1.Zone{"zone-b"} })
		Eventually(ctx, func() map[string]bool { return f.offerings(ctx) }).Should(HaveKey("standard/zone-b/on-demand"), "the change was seen")
		release(ctx)
		env.waitGone(ctx, claim)
		Eventually(ctx, func() []string {
			events := &corev1.EventList{}
			Expect(env.client.List(ctx, events)).To(Succeed())
			return lo.FilterMap(events.Items, func(e corev1.Event, _ int) (string, bool) {
				return e.Message, e.InvolvedObject.UID == claim.UID && e.Reason == "OfferingRemoved"
			})
		}).Should(ConsistOf(And(ContainSubstring("standard/zone-a/on-demand"), ContainSubstring("KarpenterMachineTemplate gone"))))
		Expect(machines.everCreated()).To(BeEmpty())
		Eventually(ctx, f.resources).Should(BeEmpty())
	})

	It("waits while its catalog does not exist, and goes on when that exists again", func(ctx SpecContext) {
		f := k.newFixture("uncataloged").delays(0, 0, never).createReady(ctx)
		claim, _, release := launchHeld(ctx, f)
		env.delete(ctx, f.catalog)
		f.waitNotReady(ctx, v1alpha1.ConditionInstanceTypesReady, v1alpha1.ReasonReferenceNotFound, "InstanceTypeCatalog "+f.name+" does not exist")
		release(ctx)
		Eventually(ctx, f.resources).Should(BeEmpty())
		f.caughtUp(ctx)
		Expect(env.get(ctx, claim)).To(Succeed())
		Expect(claim.DeletionTimestamp).To(BeNil())
		Expect(f.resources(ctx)).To(BeEmpty())

		By("creating it again")
		env.createAgain(ctx, f.catalog)
		env.waitMachine(ctx, claim)
	})
})
