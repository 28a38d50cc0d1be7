// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Only MachineDeployments are discovered.
var _ = Describe("A MachineDeployment whose replicas another field manager applies", func() {
	const offering = instanceType + "/" + zone + "/on-demand"

	It("is not adopted, and not changed if it was adopted before", func(ctx SpecContext) {
		f := machineDeployments.newFixture("contested").delays(0, 0, 0)
		existing := f.existing(1)
		apply := func(replicas *int32) {
			GinkgoHelper()
			existing.Spec.Replicas = replicas
			env.apply(ctx, existing, "kustomize-controller")
		}
		f.template.Spec.Discovery = f.finding(existing)
		f.template.Spec.CatalogRefs = nil
		apply(new(int32(1)))
		DeferCleanup(func(ctx context.Context) { env.delete(ctx, existing); env.waitGone(ctx, existing) })
		f.create(ctx)
		words := []string{"MachineDeployment fleet/" + existing.Name, "field manager kustomize-controller applies its spec.replicas", "remove replicas"}
		f.waitCondition(ctx, v1alpha1.ConditionOfferingsValid, v1alpha1.ReasonScalableResourceUnusable, words...)
		Expect(f.offerings(ctx)).To(BeEmpty())

		By("removing replicas from the manifest")
		leave := func(replicas int32) {
			GinkgoHelper()
			apply(nil)
			// Cluster API's webhook sets them, which does not run here.
			deployment := existing.DeepCopy()
			env.change(ctx, deployment, func() { deployment.Spec.Replicas = &replicas })
		}
		leave(1)
		f.waitCondition(ctx, v1alpha1.ConditionOfferingsValid, "")
		f.waitReady(ctx)
		claim := f.launchOne(ctx)
		machine := env.waitMachine(ctx, claim)
		replicas := func() int32 {
			found := &clusterv1.MachineDeployment{}
			Expect(env.client.Get(ctx, client.ObjectKeyFromObject(existing), found)).To(Succeed())
			return lo.FromPtr(found.Spec.Replicas)
		}
		Expect(replicas()).To(BeEquivalentTo(2))

		By("applying them again")
		apply(new(int32(3)))
		f.waitCondition(ctx, v1alpha1.ConditionOfferingsValid, v1alpha1.ReasonScalableResourceUnusable, words...)
		Eventually(ctx, func(g Gomega) {
			g.Expect(env.get(ctx, f.template)).To(Succeed())
			g.Expect(f.template.Status.ScalableResources).To(ConsistOf(HaveField("Paused", true)))
		}).Should(Succeed())
		Expect(f.offerings(ctx)).To(Equal(map[string]bool{offering: false}))
		f.caughtUp(ctx)
		Expect(replicas()).To(BeEquivalentTo(3), "only one controller sets them")
		Expect(env.exists(ctx, machine)).To(BeTrue())

		By("removing them permanently: the surplus Machine is removed")
		leave(3)
		f.waitCondition(ctx, v1alpha1.ConditionOfferingsValid, "")
		Eventually(ctx, replicas).Should(BeEquivalentTo(2))
		Expect(f.offerings(ctx)).To(Equal(map[string]bool{offering: true}))
		Expect(env.waitMachine(ctx, claim).UID).To(Equal(machine.UID))
		env.delete(ctx, claim)
		env.waitGone(ctx, claim)
	})
})

// apply applies a MachineDeployment with server-side apply, with all fields that are set.
func (e *environment) apply(ctx context.Context, deployment *clusterv1.MachineDeployment, manager string) {
	GinkgoHelper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&clusterv1.MachineDeployment{ObjectMeta: deployment.ObjectMeta, Spec: deployment.Spec})
	Expect(err).NotTo(HaveOccurred())
	object := &unstructured.Unstructured{Object: fields}
	object.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("MachineDeployment"))
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(object.Object, "status")
	Expect(e.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(manager), client.ForceOwnership)).To(Succeed())
}
