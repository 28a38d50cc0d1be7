// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

var _ = forEachKind("An InstanceTypeCatalog", func(k kind) {
	const own = instanceType + "/" + zone + "/" + karpv1.CapacityTypeOnDemand

	It("is offered by templates that refer to it, and replaces no Node when it changes or is deleted", func(ctx SpecContext) {
		f := k.newFixture("catalogref")
		listed := f.catalog
		f.createReady(ctx)
		claim := f.launchOne(ctx)
		env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		Expect(f.machines(ctx)).To(HaveLen(1))
		machine := f.machines(ctx)[0].Name

		By("reporting what it has")
		Eventually(ctx, func(g Gomega) {
			g.Expect(env.get(ctx, listed)).To(Succeed())
			g.Expect(listed.Status.InstanceTypes).To(BeEquivalentTo(1))
			g.Expect(listed.Status.Offerings).To(BeEquivalentTo(1))
			g.Expect(listed.Status.Templates).To(BeEquivalentTo(1))
			g.Expect(listed.StatusConditions().Root().IsTrue()).To(BeTrue())
		}).Should(Succeed())

		By("changing a price")
		env.change(ctx, listed, func() { listed.Spec.InstanceTypes[0].Offerings[0].Price = "0.3" })
		price := func() float64 { return f.instanceType(ctx, instanceType).Offerings[0].Price }
		Eventually(ctx, price).Should(Equal(0.3))
		reason, err := env.cloudProvider().IsDrifted(ctx, claim)
		Expect(err).NotTo(HaveOccurred())
		Expect(reason).To(BeEmpty())

		By("adding a type that is wrong, and another that is not")
		env.change(ctx, listed, func() {
			wrong, right := listed.Spec.InstanceTypes[0].DeepCopy(), listed.Spec.InstanceTypes[0].DeepCopy()
			wrong.Name, wrong.Offerings[0].Price = "wrong", ""
			right.Name = "right"
			listed.Spec.InstanceTypes = append(listed.Spec.InstanceTypes, *wrong, *right)
		})
		Eventually(ctx, func() map[string]bool { return f.offerings(ctx) }).Should(Equal(map[string]bool{own: true, "right/" + zone + "/on-demand": true}))
		f.waitCondition(ctx, v1alpha1.ConditionOfferingsValid, v1alpha1.ReasonInstanceTypesInvalid, "InstanceTypeCatalog "+f.name, "(wrong)", "it has no price")
		Eventually(ctx, func(g Gomega) {
			g.Expect(env.get(ctx, listed)).To(Succeed())
			g.Expect(listed.Status.InstanceTypes).To(BeEquivalentTo(2))
			found := listed.StatusConditions().Get(v1alpha1.ConditionInstanceTypesValid)
			g.Expect(found.IsFalse()).To(BeTrue())
			g.Expect(found.Message).To(HavePrefix("1 of 3 instance types cannot be used: instance type wrong: offering"))
		}).Should(Succeed())

		By("deleting it")
		env.delete(ctx, listed)
		f.waitCondition(ctx, v1alpha1.ConditionInstanceTypesReady, v1alpha1.ReasonReferenceNotFound, "InstanceTypeCatalog "+f.name+" does not exist: create it")
		Expect(f.offerings(ctx)).To(Equal(map[string]bool{own: false}))
		reason, err = env.cloudProvider().IsDrifted(ctx, claim)
		Expect(err).NotTo(HaveOccurred())
		Expect(reason).To(BeEmpty())

		By("creating it again")
		listed.Spec.InstanceTypes = listed.Spec.InstanceTypes[:1]
		env.createAgain(ctx, listed)
		f.waitReady(ctx)
		Eventually(ctx, func() map[string]bool { return f.offerings(ctx) }).Should(Equal(map[string]bool{own: true}))
		Expect(env.exists(ctx, claim)).To(BeTrue())
		Expect(f.machines(ctx)).To(HaveLen(1))
		Expect(f.machines(ctx)[0].Name).To(Equal(machine))
	})

	It("that is deleted while the template has another leaves unknown what it had, and drifts no Node", func(ctx SpecContext) {
		f := k.newFixture("catalogmissing")
		f.withCatalog(ctx, "other")
		const others = "other/" + zone + "/" + karpv1.CapacityTypeOnDemand
		f.createReady(ctx)
		claim := f.launchOne(ctx)
		env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		machine := env.waitMachine(ctx, claim)
		drifted := func() string {
			GinkgoHelper()
			reason, err := env.cloudProvider().IsDrifted(ctx, claim)
			Expect(err).NotTo(HaveOccurred())
			return string(reason)
		}
		current := func(g Gomega) {
			g.Expect(drifted()).To(BeEmpty())
			g.Expect(env.get(ctx, claim)).To(Succeed())
			g.Expect(claim.DeletionTimestamp).To(BeNil())
			g.Expect(claim.StatusConditions().Get(karpv1.ConditionTypeDrifted).IsTrue()).To(BeFalse())
			g.Expect(f.condition(ctx, v1alpha1.ConditionNodesCurrent).IsTrue()).To(BeTrue())
			g.Expect(f.machines(ctx)).To(ConsistOf(And(HaveField("UID", machine.UID), HaveField("DeletionTimestamp", BeNil()))))
		}

		By("deleting the one that its Node is from")
		env.delete(ctx, f.catalog)
		f.waitCondition(ctx, v1alpha1.ConditionOfferingsValid, v1alpha1.ReasonReferenceNotFound, "spec.catalogRefs[0]: InstanceTypeCatalog "+f.name+" does not exist")
		Expect(f.template.StatusConditions().Root().IsTrue()).To(BeTrue(), "else nothing drifts for another reason")
		Expect(f.offerings(ctx)).To(Equal(map[string]bool{own: false, others: true}))
		f.caughtUp(ctx)
		current(Default)

		By("launching meanwhile: only what the other has")
		env.waitGone(ctx, f.launchOne(ctx))
		next := f.newClaim()
		next.Spec.Requirements[0].Values = append(next.Spec.Requirements[0].Values, "other")
		Expect(env.client.Create(ctx, next)).To(Succeed())
		env.waitMachine(ctx, next)
		env.delete(ctx, next)
		env.waitGone(ctx, next)

		By("creating it again")
		env.createAgain(ctx, f.catalog)
		f.waitCondition(ctx, v1alpha1.ConditionOfferingsValid, "")
		Eventually(ctx, func() map[string]bool { return f.offerings(ctx) }).Should(Equal(map[string]bool{own: true, others: true}))
		Eventually(ctx, current).Should(Succeed())
		second := f.launchOne(ctx)
		env.waitMachine(ctx, second)
		env.delete(ctx, second)
		env.waitGone(ctx, second)

		By("removing the type from it, which is known: its Node drifts")
		env.change(ctx, f.catalog, func() { f.catalog.Spec.InstanceTypes[0].Name = "renamed" })
		Eventually(ctx, drifted).Should(Equal(v1alpha1.DriftOfferingRemoved))
	})

	It("can name the infrastructure of its types", func(ctx SpecContext) {
		f := k.newFixture("catalogown")
		machine := &f.template.Spec.Template.Spec
		f.catalog.Spec.InstanceTypes[0].InfrastructureRef, machine.InfrastructureRef = machine.InfrastructureRef, nil
		f.createReady(ctx)
		env.waitFor(ctx, f.launchOne(ctx), karpv1.ConditionTypeInitialized)
		Expect(f.machines(ctx)).To(HaveLen(1))
	})

	It("counts the templates that refer to it", func(ctx SpecContext) {
		f := k.newFixture("counted")
		listed := f.catalog
		templates := func() int32 {
			Expect(env.get(ctx, listed)).To(Succeed())
			return listed.Status.Templates
		}
		f.createReady(ctx)
		Eventually(ctx, templates).Should(BeEquivalentTo(1))
		env.change(ctx, f.template, func() { f.template.Spec.CatalogRefs = nil })
		Eventually(ctx, templates).Should(BeEquivalentTo(0))
	})
})

// withCatalog lets the template refer to a second catalog, with the fixture's instance type under another name,
// and creates that.
func (f *fixture) withCatalog(ctx context.Context, name string) {
	GinkgoHelper()
	second := &v1alpha1.InstanceTypeCatalog{ObjectMeta: metav1.ObjectMeta{Name: f.name + "-" + name}, Spec: *f.catalog.Spec.DeepCopy()}
	second.Spec.InstanceTypes[0].Name = name
	f.template.Spec.CatalogRefs = append(f.template.Spec.CatalogRefs, v1alpha1.CatalogReference{Name: second.Name})
	Expect(env.client.Create(ctx, second)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(env.client.Delete(ctx, second))).To(Succeed()) })
}

// createAgain creates a catalog that was deleted, as another object with the same content.
func (e *environment) createAgain(ctx context.Context, deleted *v1alpha1.InstanceTypeCatalog) {
	GinkgoHelper()
	*deleted = v1alpha1.InstanceTypeCatalog{ObjectMeta: metav1.ObjectMeta{Name: deleted.Name}, Spec: deleted.Spec}
	Expect(e.client.Create(ctx, deleted)).To(Succeed())
}
