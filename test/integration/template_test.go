// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"

	"github.com/awslabs/operatorpkg/status"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

var _ = Describe("A template", Ordered, func() {
	// bystander is a good template, which errors in others must not affect.
	var bystander *fixture

	BeforeAll(func(ctx SpecContext) { bystander = machineDeployments.newFixture("bystander").createReady(ctx) })
	AfterAll(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(env.client.Delete(ctx, bystander.template))).To(Succeed())
	})

	// others expects that the bystander is Ready and always was.
	others := func(ctx context.Context) {
		GinkgoHelper()
		since := bystander.template.StatusConditions().Root().LastTransitionTime
		Expect(bystander.condition(ctx, status.ConditionReady).IsTrue()).To(BeTrue())
		Expect(bystander.template.StatusConditions().Root().LastTransitionTime).To(Equal(since))
	}

	It("whose infrastructure template is missing launches nothing until it exists", func(ctx SpecContext) {
		f := machineDeployments.newFixture("noinfra")
		machines := f.watchMachines(ctx)
		missing := f.infrastructure.DeepCopyObject().(client.Object)
		missing.SetName("noinfra-missing")
		f.template.Spec.Template.Spec.InfrastructureRef.Name = missing.GetName()
		f.create(ctx)
		f.waitNotReady(ctx, v1alpha1.ConditionInfrastructureReady, v1alpha1.ReasonReferenceNotFound,
			"spec.template.spec.infrastructureRef", "SimulatedMachineTemplate fleet/noinfra-missing does not exist")
		others(ctx)

		By("launching a claim nevertheless")
		claim := f.launchOne(ctx)
		env.waitGone(ctx, claim)
		Expect(f.resources(ctx)).To(BeEmpty())
		Expect(machines.everCreated()).To(BeEmpty())

		By("creating the infrastructure template, deleting it and creating it again")
		again := missing.DeepCopyObject().(client.Object)
		Expect(env.client.Create(ctx, missing)).To(Succeed())
		f.waitReady(ctx)
		env.delete(ctx, missing)
		f.waitNotReady(ctx, v1alpha1.ConditionInfrastructureReady, v1alpha1.ReasonReferenceNotFound, missing.GetName())
		Expect(env.client.Create(ctx, again)).To(Succeed())
		f.waitReady(ctx)
		env.waitMachine(ctx, f.launchOne(ctx))
	})

	It("whose bootstrap template cannot be used is not Ready until it can", func(ctx SpecContext) {
		f := machineDeployments.newFixture("nobootstrap")
		ref := clusterv1.ContractVersionedObjectReference{APIGroup: "bootstrap.cluster.x-k8s.io", Kind: "KubeadmConfigTemplate", Name: f.name}
		f.template.Spec.Template.Spec.Bootstrap = clusterv1.Bootstrap{ConfigRef: ref}
		f.create(ctx)

		By("having a kind without Cluster API's contract label")
		f.waitNotReady(ctx, v1alpha1.ConditionBootstrapReady, v1alpha1.ReasonReferenceKindUnusable,
			"spec.template.spec.bootstrap.configRef", "KubeadmConfigTemplate", "cluster.x-k8s.io/v1beta2")
		crd := &apiextensionsv1.CustomResourceDefinition{}
		Expect(env.crds.Get(ctx, client.ObjectKey{Name: "kubeadmconfigtemplates.bootstrap.cluster.x-k8s.io"}, crd)).To(Succeed())
		before := crd.DeepCopy()
		metav1.SetMetaDataLabel(&crd.ObjectMeta, "cluster.x-k8s.io/v1beta2", "v1beta2")
		Expect(env.crds.Patch(ctx, crd, client.MergeFrom(before))).To(Succeed())

		By("having no such object")
		f.waitNotReady(ctx, v1alpha1.ConditionBootstrapReady, v1alpha1.ReasonReferenceNotFound,
			"spec.template.spec.bootstrap.configRef", "KubeadmConfigTemplate fleet/nobootstrap does not exist")
		others(ctx)
		config := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{
			"spec": map[string]any{"joinConfiguration": map[string]any{"nodeRegistration": map[string]any{"name": "x"}}},
		}}}}
		config.SetAPIVersion("bootstrap.cluster.x-k8s.io/v1beta2")
		config.SetKind(ref.Kind)
		config.SetNamespace(served.Namespace)
		config.SetName(ref.Name)
		Expect(env.client.Create(ctx, config)).To(Succeed())

		By("having no version, which kubeadm needs")
		f.waitNotReady(ctx, v1alpha1.ConditionVersionReady, v1alpha1.ReasonVersionMissing,
			"spec.template.spec.version is not set", "KubeadmConfigTemplate", "set the Kubernetes version")
		env.change(ctx, f.template, func() { f.template.Spec.Template.Spec.Version = "v1.36.3" })
		f.waitReady(ctx)
	})

	DescribeTable("that is wrong is not Ready until it is corrected",
		func(ctx SpecContext, name string, spoil func(*fixture), condition, reason string, words ...string) {
			f := machineDeployments.newFixture(name)
			template, listed := f.template.Spec.DeepCopy(), f.catalog.Spec.DeepCopy()
			spoil(f)
			f.create(ctx)
			f.waitNotReady(ctx, condition, reason, words...)
			others(ctx)
			env.change(ctx, f.template, func() { f.template.Spec = *template })
			env.change(ctx, f.catalog, func() { f.catalog.Spec = *listed })
			f.waitReady(ctx)
		},
		Entry("because of an unknown kind of infrastructure", "nokind", func(f *fixture) {
			f.template.Spec.Template.Spec.InfrastructureRef.Kind = "NoSuchMachineTemplate"
		}, v1alpha1.ConditionInfrastructureReady, v1alpha1.ReasonReferenceKindUnusable, "NoSuchMachineTemplate", "install its provider"),
		Entry("because of a kind that is no template", "notemplate", func(f *fixture) {
			f.template.Spec.Template.Spec.InfrastructureRef.Kind, f.template.Spec.Template.Spec.InfrastructureRef.Name = "SimulatedCluster", served.Name
		}, v1alpha1.ConditionInfrastructureReady, v1alpha1.ReasonReferenceKindUnusable, "SimulatedCluster fleet/served is not a template"),
		Entry("because it has no infrastructure", "noref", func(f *fixture) {
			f.template.Spec.Template.Spec.InfrastructureRef = nil
		}, v1alpha1.ConditionInfrastructureReady, v1alpha1.ReasonReferenceMissing, "spec.template.spec.infrastructureRef"),
		Entry("because an instance type's infrastructure is missing", "notype", func(f *fixture) {
			f.catalog.Spec.InstanceTypes[0].InfrastructureRef = machineDeployments.infrastructureRef("notype-missing")
		}, v1alpha1.ConditionInstanceTypesReady, v1alpha1.ReasonReferenceNotFound, "notype-missing"),
		Entry("because it has no instance types", "notypes", func(f *fixture) {
			f.template.Spec.CatalogRefs = nil
		}, v1alpha1.ConditionInstanceTypesReady, v1alpha1.ReasonNoInstanceTypes, "the template has no instance types", "spec.catalogRefs", "spec.discovery"),
		Entry("because its catalog has no instance types", "emptycatalog", func(f *fixture) {
			f.catalog.Spec = v1alpha1.InstanceTypeCatalogSpec{Currency: "USD"}
		}, v1alpha1.ConditionInstanceTypesReady, v1alpha1.ReasonNoInstanceTypes, "the catalogs in spec.catalogRefs list no instance type"),
		Entry("because of a capacity that no machine has", "negative", func(f *fixture) {
			f.catalog.Spec.InstanceTypes[0].Capacity[corev1.ResourceMemory] = resource.MustParse("-1Gi")
		}, v1alpha1.ConditionInstanceTypesReady, v1alpha1.ReasonInstanceTypesInvalid, "InstanceTypeCatalog negative (standard)", "capacity.memory", "-1Gi"),
	)

	It("launches nothing while the Cluster is paused", func(ctx SpecContext) {
		f := machineDeployments.newFixture("paused").delays(0, 0, never).createReady(ctx)
		DeferCleanup(func(ctx SpecContext) { env.pauseCluster(ctx, false) })
		env.pauseCluster(ctx, true)
		f.waitNotReady(ctx, v1alpha1.ConditionClusterReady, v1alpha1.ReasonClusterPaused, "Cluster fleet/served is paused")
		claim := f.launchOne(ctx)
		env.waitGone(ctx, claim)
		Expect(f.resources(ctx)).To(BeEmpty())

		env.pauseCluster(ctx, false)
		f.waitReady(ctx)
		next := f.launchOne(ctx)
		env.waitFor(ctx, next, karpv1.ConditionTypeLaunched)
		env.waitMachine(ctx, next)
	})
})

// waitNotReady waits until the template is not Ready because of a condition, with a message that
// contains all given words.
func (f *fixture) waitNotReady(ctx context.Context, condition, reason string, words ...string) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		found := f.condition(ctx, condition)
		g.Expect(found.IsFalse()).To(BeTrue(), "%s is %s", condition, found.Status)
		g.Expect(found.Reason).To(Equal(reason))
		for _, word := range words {
			g.Expect(found.Message).To(ContainSubstring(word))
		}
		ready := f.template.StatusConditions().Root()
		g.Expect(ready.IsFalse()).To(BeTrue(), "Ready is %s", ready.Status)
		g.Expect(ready.Message).NotTo(BeEmpty())
	}).Should(Succeed())
}
