// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/budget"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/test/harness/rotation"
)

const (
	manyTypes = 800
	// manyLabels are labels of each type that fill the catalog.
	manyLabels = 10
	// etcdLimit is the size of the largest object that etcd accepts by default.
	etcdLimit = 3 << 19
)

// withManyTypes gives the catalog 800 instance types with 6 offerings and many long labels each; the
// first is that of the fixture.
func (f *fixture) withManyTypes() *fixture {
	first := f.catalog.Spec.InstanceTypes[0]
	first.Labels = map[string]v1alpha1.LabelValue{
		"kubernetes.io/arch": "arm64", "topology.kubernetes.io/region": "us-east-1", v1alpha1.InstanceFamilyLabel: "m7", "large.example.com/generation": "7",
	}
	for i := range manyLabels {
		first.Labels[fmt.Sprintf("large.example.com/label-%d", i)] = v1alpha1.LabelValue(strings.Repeat("x", 63))
	}
	first.Offerings = nil
	for _, zone := range []v1alpha1.Zone{zone, "us-east-1b", "us-east-1c"} {
		for _, capacityType := range []v1alpha1.CapacityType{karpv1.CapacityTypeOnDemand, karpv1.CapacityTypeSpot} {
			first.Offerings = append(first.Offerings, v1alpha1.Offering{Zones: []v1alpha1.Zone{zone}, CapacityType: capacityType, Price: "1.2345"})
		}
	}
	f.catalog.Spec.InstanceTypes = nil
	for i := range manyTypes {
		instanceType := *first.DeepCopy()
		if i > 0 {
			instanceType.Name = fmt.Sprintf("m%d-metal.%dxlarge", i, i%48)
		}
		f.catalog.Spec.InstanceTypes = append(f.catalog.Spec.InstanceTypes, instanceType)
	}
	return f
}

// applyCatalog applies the catalog with server-side apply, as a user does.
func (f *fixture) applyCatalog(ctx context.Context) {
	GinkgoHelper()
	applied := &v1alpha1.InstanceTypeCatalog{Spec: f.catalog.Spec}
	applied.Name = f.name
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(applied)
	Expect(err).NotTo(HaveOccurred())
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.CatalogKind))
	unstructured.RemoveNestedField(object.Object, "status")
	// It is expensive for the API server, and the machine can be busy.
	Eventually(ctx, func() error {
		return env.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), client.FieldOwner("user"), client.ForceOwnership)
	}).Should(Succeed())
}

// mark marks the first offering of many instance types as unavailable, as a reconciler does.
func (f *fixture) mark(ctx context.Context, count int) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		g.Expect(env.get(ctx, f.template)).To(Succeed())
		before := f.template.DeepCopy()
		for i := range count {
			marked := f.catalog.Spec.InstanceTypes[1+i%(manyTypes-1)]
			offering := marked.Offerings[i/manyTypes]
			f.template.Status.UnavailableOfferings = catalog.MarkUnavailable(f.template.Status.UnavailableOfferings, v1alpha1.UnavailableOffering{
				InstanceType: marked.Name, Zone: string(offering.Zones[0]), CapacityType: string(offering.CapacityType), Reason: "InsufficientCapacity",
				Message: strings.Repeat("none left ", 100),
			}, env.clock.Now())
		}
		g.Expect(env.client.Status().Patch(ctx, f.template, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))).To(Succeed())
	}).Should(Succeed())
}

// sizes returns how large the catalog or the template is, and its status, as the API server stores them.
func (f *fixture) sizes(ctx context.Context, kind string) (all, status int) {
	GinkgoHelper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	Expect(env.client.Get(ctx, client.ObjectKey{Name: f.name}, object)).To(Succeed())
	return budget.Size(object.Object), budget.Size(object.Object["status"])
}

var _ = Describe("A template whose catalog is nearly too large", long, func() {
	if !rotation.Turn(3, 0) {
		return // It keeps an API server busy for a minute.
	}
	It("has room for everything that can be wrong with it, and continues with what is right", func(ctx SpecContext) {
		f := machineDeployments.newFixture("large").withManyTypes().delays(0, 0, never)
		DeferCleanup(func(ctx SpecContext) {
			Expect(env.client.DeleteAllOf(ctx, &karpv1.NodeClaim{}, client.MatchingLabels{karpv1.NodePoolLabelKey: f.name})).To(Succeed())
			Expect(client.IgnoreNotFound(env.client.Delete(ctx, f.template))).To(Succeed())
			Expect(client.IgnoreNotFound(env.client.Delete(ctx, f.catalog))).To(Succeed())
		})
		f.applyCatalog(ctx)
		for _, object := range []client.Object{f.infrastructure, f.template, f.pool} {
			Expect(env.client.Create(ctx, object)).To(Succeed())
		}
		f.waitReady(ctx)
		Expect(f.template.Status.Offerings).To(BeEquivalentTo(6 * manyTypes))
		Eventually(ctx, func(g Gomega) {
			g.Expect(env.get(ctx, f.catalog)).To(Succeed())
			g.Expect(f.catalog.Status.Offerings).To(BeEquivalentTo(6 * manyTypes))
		}).Should(Succeed())
		all, status := f.sizes(ctx, v1alpha1.CatalogKind)
		Expect(etcdLimit-all).To(And(BeNumerically(">", 2*budget.Message-status), BeNumerically("<", 300_000)), "bytes that are left for the status of the catalog")

		By("marking 1000 offerings, each with a long message")
		f.mark(ctx, 1000)
		Expect(len(f.template.Status.UnavailableOfferings)).To(BeNumerically(">", 400))

		By("changing the spec, so that nearly all offerings are invalid")
		bad := patch("add", "architecture", "pdp11")
		bad.EnabledIf = fmt.Sprintf("{{ ne .instanceType %q }}", instanceType)
		env.change(ctx, f.template, func() {
			f.template.Spec.Patches = []v1alpha1.Patch{patch("add", "instanceType", "{{ .instanceType }}-x"), bad}
		})
		const invalid = 6 * (manyTypes - 1)
		Eventually(ctx, func(g Gomega) {
			g.Expect(env.get(ctx, f.template)).To(Succeed())
			ready := f.template.StatusConditions().Root()
			g.Expect(ready.IsTrue()).To(BeTrue(), ready.Message)
			g.Expect(ready.ObservedGeneration).To(Equal(f.template.Generation))
			g.Expect(lo.SumBy(f.template.Status.InvalidOfferings, func(o v1alpha1.InvalidOfferings) int32 { return o.Count })).To(BeEquivalentTo(invalid))
		}).Should(Succeed())
		Expect(f.template.Status.InvalidOfferings).To(HaveLen(1), "all of them are rejected for one reason")
		Expect(f.template.StatusConditions().Get(v1alpha1.ConditionOfferingsValid).Message).To(And(ContainSubstring(fmt.Sprint(invalid)), ContainSubstring("pdp11")))
		Expect(len(f.template.Status.UnavailableOfferings)).To(BeNumerically(">", 400))
		all, status = f.sizes(ctx, v1alpha1.Kind)
		Expect(status).To(And(BeNumerically(">", budget.Unavailable/2), BeNumerically("<", budget.Status)))
		Expect(all).To(BeNumerically("<", etcdLimit))

		By("launching what can be generated")
		claim := f.launchOne(ctx)
		env.waitMachine(ctx, claim)
		Expect(f.template.Status.AvailableOfferings).To(BeEquivalentTo(6))
		Expect(f.template.Status.Offerings).To(BeEquivalentTo(6 * manyTypes))

		By("changing a price, and the spec again")
		f.catalog.Spec.InstanceTypes[0].Offerings[0].Price = "0.0001"
		f.applyCatalog(ctx)
		Eventually(ctx, func() float64 { return f.instanceType(ctx, instanceType).Offerings[0].Price }).Should(Equal(0.0001))
		env.change(ctx, f.template, func() { f.template.Spec.MaxMachines = new(int32(10)) })
		f.mark(ctx, 1000)
		Eventually(ctx, func(g Gomega) {
			g.Expect(env.get(ctx, f.template)).To(Succeed())
			g.Expect(f.template.StatusConditions().Root().ObservedGeneration).To(Equal(f.template.Generation))
		}).Should(Succeed())
		Expect(env.events(ctx, v1alpha1.Kind, f.name, "StatusNotWritten")).To(BeEmpty())
	})
})
