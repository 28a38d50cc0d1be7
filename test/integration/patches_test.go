// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

// Only MachineDeployments share what they refer to; each MachinePool has its own objects
// (pools_objects_test.go).
var _ = Describe("Patches", func() {
	It("make one copy of the base for each content, owned by its users and deleted with them", func(ctx SpecContext) {
		f := machineDeployments.newFixture("patched").delays(0, 0, never)
		f.template.Spec.ScalableResource.EmptyTTLSeconds = new(int32(0))
		f.template.Spec.Patches = []v1alpha1.Patch{patch("add", "instanceType", "{{ .instanceType }}-x")}
		f.catalog.Spec.InstanceTypes[0].Offerings = append(f.catalog.Spec.InstanceTypes[0].Offerings,
			v1alpha1.Offering{Zones: []v1alpha1.Zone{"zone-b"}, CapacityType: karpv1.CapacityTypeOnDemand, Price: "0.2"})
		f.createReady(ctx)
		Expect(f.copies(ctx)).To(BeEmpty(), "copies are created when they are needed")

		By("launching in two zones")
		a, b := f.newClaim(), f.newClaim()
		b.Spec.Requirements[1].Values = []string{"zone-b"}
		for _, claim := range []*karpv1.NodeClaim{a, b} {
			Expect(env.client.Create(ctx, claim)).To(Succeed())
		}
		env.waitMachine(ctx, a)
		env.waitMachine(ctx, b)
		var copied infrav1.SimulatedMachineTemplate
		Eventually(ctx, func(g Gomega) {
			copies := f.copies(ctx)
			g.Expect(copies).To(HaveLen(1), "two zones with equal content share one copy")
			copied = copies[0]
			owners := lo.FilterMap(copied.OwnerReferences, func(owner metav1.OwnerReference, _ int) (string, bool) {
				return owner.Name, owner.Kind == "MachineDeployment"
			})
			g.Expect(owners).To(ConsistOf(lo.Map(f.resources(ctx), func(r *scalable.Resource, _ int) string { return r.GetName() })))
		}).Should(Succeed())
		Expect(copied.Spec.Template.Spec.InstanceType).To(Equal(instanceType + "-x"))
		Expect(copied.Spec.Template.Spec.Delays).To(Equal(f.machine().Delays))
		Expect(copied.Annotations).To(HaveKeyWithValue(clusterv1.TemplateClonedFromNameAnnotation, f.name))
		for _, resource := range f.resources(ctx) {
			Expect(resource.References()).To(ConsistOf(HaveField("Name", copied.Name)))
		}

		By("deleting the copy: it is created again unchanged")
		env.delete(ctx, &copied)
		Eventually(ctx, func(g Gomega) {
			copies := f.copies(ctx)
			g.Expect(copies).To(HaveLen(1))
			g.Expect(copies[0].Name).To(Equal(copied.Name))
			g.Expect(copies[0].UID).NotTo(Equal(copied.UID))
		}).Should(Succeed())

		By("changing the base: the next claim gets another resource, and running Machines stay")
		env.change(ctx, f.infrastructure, func() { f.machine().Region = "elsewhere" })
		Eventually(ctx, func(g Gomega) {
			claim := f.launchOne(ctx)
			env.waitFor(ctx, claim, karpv1.ConditionTypeLaunched)
			g.Expect(env.get(ctx, claim)).To(Succeed())
			g.Expect(claim.Annotations[v1alpha1.ScalableResourceAnnotation]).NotTo(Equal(a.Annotations[v1alpha1.ScalableResourceAnnotation]))
		}).Should(Succeed())
		Expect(env.get(ctx, a)).To(Succeed())
		Expect(a.DeletionTimestamp).To(BeNil())

		By("deleting all claims: resources and copies are deleted")
		for _, claim := range f.all(ctx) {
			env.delete(ctx, &claim)
		}
		Eventually(ctx, f.resources).Should(BeEmpty())
		env.later(ctx, time.Hour, a, func(g Gomega) {
			copies := f.copies(ctx)
			for i := range copies {
				g.Expect(env.touch(ctx, &copies[i])).To(Succeed())
			}
			g.Expect(copies).To(BeEmpty())
		})
	})

})

var _ = forEachKind("Patches", func(k kind) {
	DescribeTable("that are wrong for all offerings make the template not Ready until they are corrected",
		func(ctx SpecContext, name string, patches []v1alpha1.Patch, reason string, words ...string) {
			f := k.newFixture(name)
			f.template.Spec.Patches = patches
			f.create(ctx)
			f.waitNotReady(ctx, v1alpha1.ConditionInstanceTypesReady, reason, words...)
			Expect(f.copies(ctx)).To(BeEmpty(), "nothing is half generated")
			Expect(f.simulatedPools(ctx)).To(BeEmpty())
			env.change(ctx, f.template, func() { f.template.Spec.Patches = nil })
			f.waitReady(ctx)
		},
		Entry("a path that does not exist", "nopath", []v1alpha1.Patch{patch("replace", "nothing", "x")}, v1alpha1.ReasonPatchesFailed,
			"spec.patches[0].jsonPatches[0] (replace /spec/template/spec/nothing) cannot be applied", k.infrastructureRef("").Kind+" nopath"+k.suffix()),
		Entry("an expression that fails", "failing", []v1alpha1.Patch{patch("add", "instanceType", `{{ fail "too small" }}`)}, v1alpha1.ReasonPatchesFailed,
			"spec.patches[0].jsonPatches[0]", "too small"),
		Entry("no Go template", "unparsable", []v1alpha1.Patch{patch("add", "instanceType", "{{ end }}")}, v1alpha1.ReasonPatchesFailed,
			"spec.patches[0].jsonPatches[0]: valueFrom.template", "is not a Go template"),
		Entry("a value of the wrong type", "wrongtype", []v1alpha1.Patch{patch("add", "instanceType", "{a: 1}")}, v1alpha1.ReasonTemplatesRejected,
			"the management cluster rejects "+k.madeOf(), k.field("instanceType")),
		Entry("a field that the provider does not have", "nofield", []v1alpha1.Patch{patch("add", "instanceTyp", "x")}, v1alpha1.ReasonTemplatesRejected,
			"the management cluster rejects "+k.madeOf(), `unknown field "`+k.field("instanceTyp")+`"`),
	)

	It("that are wrong for some offerings leave the others", func(ctx SpecContext) {
		f := k.newFixture("partly").delays(0, 0, never)
		bad := patch("add", "architecture", "pdp11")
		bad.EnabledIf = `{{ eq .zone "zone-b" }}`
		f.template.Spec.Patches = []v1alpha1.Patch{bad}
		f.catalog.Spec.InstanceTypes[0].Offerings = append(f.catalog.Spec.InstanceTypes[0].Offerings,
			v1alpha1.Offering{Zones: []v1alpha1.Zone{"zone-b"}, CapacityType: karpv1.CapacityTypeOnDemand, Price: "0.01"})
		f.createReady(ctx)
		Eventually(ctx, func(g Gomega) {
			g.Expect(env.get(ctx, f.template)).To(Succeed())
			g.Expect(f.template.Status.InvalidOfferings).To(HaveLen(1))
			invalid := f.template.Status.InvalidOfferings[0]
			g.Expect(invalid.Count).To(BeEquivalentTo(1))
			g.Expect(invalid.Examples).To(ConsistOf(instanceType + "/zone-b/on-demand"))
			g.Expect(invalid.Message).To(And(ContainSubstring("rejects "+k.madeOf()), ContainSubstring("pdp11")))
			condition := f.template.StatusConditions().Get(v1alpha1.ConditionOfferingsValid)
			g.Expect(condition.IsFalse()).To(BeTrue())
			g.Expect(condition.Message).To(ContainSubstring(instanceType + "/zone-b/on-demand"))
		}).Should(Succeed())

		By("launching: the cheapest is wrong, so the other one is used")
		claim := f.newClaim()
		claim.Spec.Requirements[1].Values = []string{zone, "zone-b"}
		Expect(env.client.Create(ctx, claim)).To(Succeed())
		env.waitFor(ctx, claim, karpv1.ConditionTypeLaunched)
		Expect(env.get(ctx, claim)).To(Succeed())
		Expect(claim.Labels).To(HaveKeyWithValue(corev1.LabelTopologyZone, zone))
	})
})

// patch returns a patch of one field of the simulated machine.
func patch(op, field, template string) v1alpha1.Patch {
	operation := v1alpha1.JSONPatch{Op: op, Path: "/spec/template/spec/" + field, ValueFrom: &v1alpha1.JSONPatchValue{Template: template}}
	if !strings.Contains(template, "{{") {
		operation.Value, operation.ValueFrom = &apiextensionsv1.JSON{Raw: []byte(`"` + template + `"`)}, nil
		if strings.HasPrefix(template, "{") {
			operation.Value.Raw = []byte(`{"a": 1}`)
		}
	}
	return v1alpha1.Patch{Target: v1alpha1.PatchTargetInfrastructure, JSONPatches: []v1alpha1.JSONPatch{operation}}
}

// copies returns the infrastructure templates that the operator has generated for the fixture.
func (f *fixture) copies(ctx context.Context) []infrav1.SimulatedMachineTemplate {
	GinkgoHelper()
	list := &infrav1.SimulatedMachineTemplateList{}
	Expect(env.client.List(ctx, list, client.MatchingLabels{v1alpha1.TemplateLabel: f.name})).To(Succeed())
	return list.Items
}
