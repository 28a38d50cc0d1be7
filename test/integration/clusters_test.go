// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"path"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

// Each operator runs with all its controllers, and has its own workload cluster. The Clusters, and
// the base that both templates refer to, are in one management cluster.
var _ = Describe("The operators of two Clusters in one namespace", Ordered, long, ContinueOnFailure, func() {
	var neighbour *environment
	BeforeAll(func() { neighbour = startNeighbour() })

	for _, k := range []kind{machineDeployments, machinePools} {
		DescribeTable("write only their own objects, which are "+string(k)+"s", func(ctx SpecContext, name, neighboursName string) {
			base := k.newInfrastructure("base-of-" + name + k.suffix())
			machineSpec(base).Delays.NodeJoin.Duration.Duration = never
			Expect(env.client.Create(ctx, base)).To(Succeed())
			a, b := newTenant(env, k, name, base), newTenant(neighbour, k, neighboursName, base)

			By("launching in both")
			a.launch(ctx)
			b.launch(ctx)
			made := lo.Map([]*tenant{a, b}, func(t *tenant, _ int) []string { return []string{t.resource(ctx), t.made(ctx)} })
			objects, neighboursObjects := env.objectsOf(ctx, a.cluster), env.objectsOf(ctx, b.cluster)

			if name != neighboursName {
				By("letting each delete what is left in its Cluster of an unknown template")
				inUse := []client.Object{a.unowned(ctx, "in-use", a.template.Name), b.unowned(ctx, "in-use", b.template.Name)}
				for _, t := range []*tenant{a, b} {
					t.clock.ahead.Store(int64(time.Minute))
					defer t.clock.ahead.Store(0)
				}
				left := []client.Object{a.unowned(ctx, "left", b.template.Name), b.unowned(ctx, "left", a.template.Name)}
				for _, object := range left {
					env.waitGone(ctx, object)
				}
				// Such objects are deleted by a timer, of which the clocks are ahead.
				Consistently(ctx, func(g Gomega) {
					for _, object := range inUse {
						g.Expect(env.exists(ctx, object)).To(BeTrue(), "%s, of a template that its own operator knows", object.GetName())
					}
				}).Should(Succeed())
			}

			By("deleting in both")
			end(ctx, a, b)
			byA, byB := written(a.requests, a.mark), written(b.requests, b.mark)
			Expect(byA.HasAll(made[0]...)).To(BeTrue(), "%v is not in what the first has written: %v", made[0], byA)
			Expect(byB.HasAll(made[1]...)).To(BeTrue(), "%v is not in what the second has written: %v", made[1], byB)
			Expect(byA.Intersection(byB)).To(BeEmpty(), "written by both")
			Expect(byA.Intersection(neighboursObjects)).To(BeEmpty(), "the second's objects that the first has written")
			Expect(byB.Intersection(objects)).To(BeEmpty(), "the first's objects that the second has written")
		},
			Entry("from templates with different names", "left", "right"),
			Entry("from templates with the same name and content", "twin", "twin"),
		)
	}
})

// tenant is one of the Clusters with a template, a NodePool and a claim.
type tenant struct {
	*environment
	kind     kind
	catalog  *v1alpha1.InstanceTypeCatalog
	template *v1alpha1.KarpenterMachineTemplate
	pool     *karpv1.NodePool
	claim    *karpv1.NodeClaim
	// mark is where the requests of the operator begin.
	mark int
}

// newTenant returns a tenant that is not in its workload cluster yet. Its template changes
// a base of the management cluster.
func newTenant(e *environment, k kind, name string, base client.Object) *tenant {
	f := k.newFixture(name)
	f.template.Spec.Template.Spec.InfrastructureRef.Name = base.GetName()
	f.template.Spec.Patches = []v1alpha1.Patch{patch("add", "instanceType", "{{ .instanceType }}-x")}
	f.template.Spec.ScalableResource.EmptyTTLSeconds = new(int32(0))
	return &tenant{environment: e, kind: k, catalog: f.catalog, template: f.template, pool: f.pool, claim: f.newClaim(), mark: e.requests.mark()}
}

// launch waits until the tenant's claim has a Machine.
func (t *tenant) launch(ctx context.Context) {
	GinkgoHelper()
	DeferCleanup(func(ctx SpecContext) { end(ctx, t) })
	for _, object := range []client.Object{t.catalog, t.template, t.pool} {
		Expect(t.client.Create(ctx, object)).To(Succeed())
	}
	Eventually(ctx, func(g Gomega) {
		g.Expect(t.get(ctx, t.template)).To(Succeed())
		g.Expect(t.template.StatusConditions().Root().IsTrue()).To(BeTrue(), "%+v", t.template.Status.Conditions)
	}).Should(Succeed())
	Expect(t.client.Create(ctx, t.claim)).To(Succeed())
	env.waitMachine(ctx, t.claim)
}

// end deletes the claims, templates and catalogs of tenants, and waits until their scalable resources no
// longer exist.
func end(ctx context.Context, tenants ...*tenant) {
	GinkgoHelper()
	for _, t := range tenants {
		Expect(client.IgnoreNotFound(t.client.Delete(ctx, t.claim))).To(Succeed())
	}
	for _, t := range tenants {
		t.waitGone(ctx, t.claim)
		Eventually(ctx, t.resources).Should(BeEmpty())
		Expect(client.IgnoreNotFound(t.client.Delete(ctx, t.template))).To(Succeed())
		Expect(client.IgnoreNotFound(t.client.Delete(ctx, t.catalog))).To(Succeed())
	}
}

func (t *tenant) generated() client.MatchingLabels {
	return scalable.GeneratedLabels(t.cluster, t.template.Name)
}

func (t *tenant) resources(ctx context.Context) []*scalable.Resource {
	GinkgoHelper()
	clusters := *env.uncached()
	clusters.Cluster = t.cluster
	resources, err := scalable.List(ctx, &clusters, t.generated())
	Expect(err).NotTo(HaveOccurred())
	return resources
}

// resource returns the tenant's only scalable resource, in the form of written.
func (t *tenant) resource(ctx context.Context) string {
	GinkgoHelper()
	resources := t.resources(ctx)
	Expect(resources).To(HaveLen(1))
	return path.Join(strings.ToLower(string(t.kind))+"s", resources[0].GetName())
}

// made waits until the tenant has one object that was generated from the base, which its scalable
// resource refers to and owns, and returns it in the form of written.
func (t *tenant) made(ctx context.Context) string {
	GinkgoHelper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(infrav1.GroupVersion.WithKind(t.kind.madeOf()))
	Eventually(ctx, func(g Gomega) {
		g.Expect(env.client.List(ctx, list, t.generated())).To(Succeed())
		g.Expect(list.Items).To(HaveLen(1), "%s for template %s of Cluster %s", t.kind.madeOf(), t.template.Name, t.cluster)
		resources := t.resources(ctx)
		g.Expect(resources).To(HaveLen(1))
		g.Expect(resources[0].References()).To(ContainElement(HaveField("Name", list.Items[0].GetName())))
		owners := lo.FilterMap(list.Items[0].GetOwnerReferences(), func(owner metav1.OwnerReference, _ int) (string, bool) {
			return owner.Name, owner.Kind == string(t.kind)
		})
		g.Expect(owners).To(ConsistOf(resources[0].GetName()))
	}).Should(Succeed())
	return path.Join(strings.ToLower(t.kind.madeOf())+"s", list.Items[0].GetName())
}

// unowned creates an object as the tenant's operator generates them for a template, to which
// no scalable resource refers.
func (t *tenant) unowned(ctx context.Context, name, of string) client.Object {
	GinkgoHelper()
	template := &infrav1.SimulatedMachineTemplate{}
	template.Spec.Template.Spec.InstanceType = instanceType
	object := client.Object(template)
	if t.kind == machinePools {
		pool := &infrav1.SimulatedMachinePool{}
		pool.Spec.InstanceType = instanceType
		object = pool
	}
	object.SetNamespace(t.cluster.Namespace)
	object.SetName(name + "-" + t.cluster.Name + t.kind.suffix())
	object.SetLabels(scalable.GeneratedLabels(t.cluster, of))
	Expect(env.client.Create(ctx, object)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(env.client.Delete(ctx, object))).To(Succeed()) })
	return object
}
