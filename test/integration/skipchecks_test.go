// SPDX-License-Identifier: Apache-2.0

package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

// skipChecks is the annotation with which users skip Cluster API's preflight checks.
const skipChecks = clusterv1.MachineSetSkipPreflightChecksAnnotation

var _ = Describe("Annotations of scalable resources", func() {
	It("let a blocked MachineSet create its Machines", func(ctx SpecContext) {
		f := machineDeployments.newFixture("skipchecks").delays(0, 0, never).createReady(ctx)
		env.upgradeControlPlane(ctx)
		claim := f.launchOne(ctx)
		set := f.maker(ctx).(*clusterv1.MachineSet)
		Eventually(ctx, func(g Gomega) {
			g.Expect(env.get(ctx, set)).To(Succeed())
			g.Expect(conditions.GetMessage(set, clusterv1.MachineSetScalingUpCondition)).To(ContainSubstring("preflight check failed"))
		}).Should(Succeed())
		Expect(f.machines(ctx)).To(BeEmpty())
		resource := f.resource(ctx)

		env.change(ctx, f.template, func() {
			f.template.Spec.ScalableResource.Annotations = map[string]string{skipChecks: "ControlPlaneIsStable"}
		})
		env.waitMachine(ctx, claim)
		Expect(f.resource(ctx).GetUID()).To(Equal(resource.GetUID()), "nothing is replaced")
		Expect(f.machineSets(ctx)).To(ConsistOf(HaveField("UID", set.UID)), "nothing is rolled out")
	})

	forEachKind("are changed in place", func(k kind) {
		It("and removed with their key, and those of other field managers stay", func(ctx SpecContext) {
			f := k.newFixture("annotated").delays(0, 0, never)
			f.template.Spec.ScalableResource.Annotations = map[string]string{"example.com/a": "1", "example.com/b": "1"}
			f.createReady(ctx)
			env.waitMachine(ctx, f.launchOne(ctx))
			resource := f.resource(ctx)
			Expect(resource.GetAnnotations()).To(And(HaveKeyWithValue("example.com/a", "1"), HaveKeyWithValue("example.com/b", "1")))
			value := "user"
			env.annotate(ctx, resource.API(), "example.com/user", &value)

			env.change(ctx, f.template, func() {
				f.template.Spec.ScalableResource.Annotations = map[string]string{"example.com/b": "2", "example.com/c": "3"}
			})
			Eventually(ctx, func() map[string]string { return f.resource(ctx).GetAnnotations() }).Should(And(
				Not(HaveKey("example.com/a")), HaveKeyWithValue("example.com/b", "2"), HaveKeyWithValue("example.com/c", "3"), HaveKeyWithValue("example.com/user", "user")))
			env.change(ctx, f.template, func() { f.template.Spec.ScalableResource.Annotations = nil })
			Eventually(ctx, func() map[string]string { return f.resource(ctx).GetAnnotations() }).Should(And(
				Not(HaveKey("example.com/b")), Not(HaveKey("example.com/c")), Not(HaveKey(v1alpha1.TemplateAnnotationsAnnotation)), HaveKeyWithValue("example.com/user", "user")))
			Expect(f.resource(ctx).GetUID()).To(Equal(resource.GetUID()), "nothing is replaced")
		})
	})

	// MachinePools have their own objects instead of copies of templates.
	It("that Cluster API reads from templates are copied from the base to existing copies", func(ctx SpecContext) {
		f := machineDeployments.newFixture("copied").delays(0, 0, never)
		f.template.Spec.Patches = []v1alpha1.Patch{patch("add", "instanceType", "{{ .instanceType }}-x")}
		f.createReady(ctx)
		env.waitMachine(ctx, f.launchOne(ctx))
		Expect(f.copies(ctx)).To(HaveLen(1))
		before := f.copies(ctx)[0]
		annotations := func() map[string]string {
			copies := f.copies(ctx)
			Expect(copies).To(ConsistOf(HaveField("UID", before.UID)), "it is the same copy")
			return copies[0].Annotations
		}

		value := "All"
		env.annotate(ctx, f.infrastructure, skipChecks, &value)
		env.annotate(ctx, f.infrastructure, "example.com/other", &value)
		Eventually(ctx, annotations).Should(HaveKeyWithValue(skipChecks, "All"))
		Expect(annotations()).NotTo(HaveKey("example.com/other"))
		env.annotate(ctx, f.infrastructure, skipChecks, nil)
		Eventually(ctx, annotations).Should(Equal(before.Annotations))
		Expect(f.infrastructure.(*infrav1.SimulatedMachineTemplate).Annotations).To(HaveKey("example.com/other"))
	})
})
