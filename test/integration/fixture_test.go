// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/awslabs/operatorpkg/status"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/generate"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

const (
	instanceType = "standard"
	zone         = "zone-a"
	cpus         = 4

	// never is a delay that no spec waits for.
	never = 10 * time.Minute
)

// fixture is a template, a catalog with one offering and the other objects that the template refers to,
// and a NodePool. All have the same name, and only one spec uses them.
type fixture struct {
	kind
	name           string
	infrastructure client.Object
	catalog        *v1alpha1.InstanceTypeCatalog
	template       *v1alpha1.KarpenterMachineTemplate
	pool           *karpv1.NodePool
	claims         int
}

// newFixture returns a fixture that is not in the API server yet.
func (k kind) newFixture(name string) *fixture {
	name += k.suffix()
	capacity := corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(cpus, resource.DecimalSI), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("110")}
	f := &fixture{kind: k, name: name, infrastructure: k.newInfrastructure(name)}
	f.machine().Capacity, f.machine().InstanceType = capacity, instanceType
	f.catalog = &v1alpha1.InstanceTypeCatalog{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.InstanceTypeCatalogSpec{InstanceTypes: []v1alpha1.InstanceType{{
			Name:      instanceType,
			Capacity:  capacity,
			Offerings: []v1alpha1.Offering{{Zones: []v1alpha1.Zone{zone}, CapacityType: karpv1.CapacityTypeOnDemand, Price: "0.1"}},
		}}},
	}
	f.template = &v1alpha1.KarpenterMachineTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.KarpenterMachineTemplateSpec{
			SpareTTLSeconds:  new(int32(0)), // specs for spare Machines set it
			ScalableResource: v1alpha1.ScalableResource{Kind: v1alpha1.ScalableResourceKind(k)},
			Template: v1alpha1.MachineTemplate{Spec: v1alpha1.MachineTemplateSpec{
				Bootstrap:         clusterv1.Bootstrap{DataSecretName: lo.ToPtr("bootstrap")},
				InfrastructureRef: k.infrastructureRef(name),
			}},
			CatalogRefs: []v1alpha1.CatalogReference{{Name: name}},
		},
	}
	f.pool = &karpv1.NodePool{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: karpv1.NodePoolSpec{
			Template: karpv1.NodeClaimTemplate{Spec: karpv1.NodeClaimTemplateSpec{
				NodeClassRef: f.nodeClassRef(),
				Requirements: []karpv1.NodeSelectorRequirementWithMinValues{},
				ExpireAfter:  karpv1.MustParseNillableDuration("Never"),
			}},
			// Nodes are empty here, and should stay nevertheless.
			Disruption: karpv1.Disruption{
				ConsolidationPolicy: karpv1.ConsolidationPolicyWhenEmpty,
				ConsolidateAfter:    karpv1.MustParseNillableDuration("Never"),
				Budgets:             []karpv1.Budget{{Nodes: "0"}},
			},
		},
	}
	return f
}

// machine returns the spec of the machines, a part of the infrastructure template.
func (f *fixture) machine() *infrav1.SimulatedMachineSpec { return machineSpec(f.infrastructure) }

func (f *fixture) nodeClassRef() *karpv1.NodeClassReference {
	return &karpv1.NodeClassReference{Group: v1alpha1.Group, Kind: v1alpha1.Kind, Name: f.name}
}

// delays sets how long the machines take.
func (f *fixture) delays(providerID, provisioning, nodeJoin time.Duration) *fixture {
	delay := func(d time.Duration) infrav1.Delay { return infrav1.Delay{Duration: metav1.Duration{Duration: d}} }
	f.machine().Delays = infrav1.Delays{
		ProviderID: delay(providerID), Provisioning: delay(provisioning), NodeJoin: delay(nodeJoin),
	}
	return f
}

// create creates the objects without waiting, and deletes them and all claims when the spec ends.
func (f *fixture) create(ctx context.Context) *fixture {
	GinkgoHelper()
	DeferCleanup(func(ctx SpecContext) {
		// The rest is then deleted automatically: AfterSuite waits for it.
		Expect(env.client.DeleteAllOf(ctx, &karpv1.NodeClaim{}, client.MatchingLabels{karpv1.NodePoolLabelKey: f.name})).To(Succeed())
		Expect(client.IgnoreNotFound(env.client.Delete(ctx, f.template))).To(Succeed())
		Expect(client.IgnoreNotFound(env.client.Delete(ctx, f.catalog))).To(Succeed())
	})
	for _, object := range []client.Object{f.infrastructure, f.catalog, f.template, f.pool} {
		Expect(env.client.Create(ctx, object)).To(Succeed())
	}
	return f
}

// createReady creates the objects and waits until machines can be launched.
func (f *fixture) createReady(ctx context.Context) *fixture {
	GinkgoHelper()
	f.create(ctx)
	f.waitReady(ctx)
	return f
}

func (f *fixture) waitReady(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		g.Expect(env.get(ctx, f.template)).To(Succeed())
		g.Expect(f.template.StatusConditions().Root().IsTrue()).To(BeTrue(), "%+v", f.template.Status.Conditions)
		g.Expect(env.get(ctx, f.pool)).To(Succeed())
		g.Expect(f.pool.StatusConditions().Root().IsTrue()).To(BeTrue(), "%+v", f.pool.Status.Conditions)
	}).Should(Succeed())
}

// launch creates claims.
func (f *fixture) launch(ctx context.Context, count int) []*karpv1.NodeClaim {
	GinkgoHelper()
	claims := make([]*karpv1.NodeClaim, count)
	for i := range claims {
		claims[i] = f.newClaim()
	}
	// Several at a time, as Karpenter's provisioner does.
	errs := make([]error, count)
	workqueue.ParallelizeUntil(ctx, 20, count, func(i int) { errs[i] = env.client.Create(ctx, claims[i]) })
	Expect(errors.Join(errs...)).To(Succeed())
	return claims
}

// launchOne creates one claim.
func (f *fixture) launchOne(ctx context.Context) *karpv1.NodeClaim {
	GinkgoHelper()
	return f.launch(ctx, 1)[0]
}

// newClaim returns a claim as Karpenter's provisioner would create it.
func (f *fixture) newClaim() *karpv1.NodeClaim {
	f.claims++
	in := func(key string, values ...string) karpv1.NodeSelectorRequirementWithMinValues {
		return karpv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	return &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name:   fmt.Sprintf("%s-%03d", f.name, f.claims),
			Labels: map[string]string{karpv1.NodePoolLabelKey: f.name},
		},
		Spec: karpv1.NodeClaimSpec{
			NodeClassRef: f.nodeClassRef(),
			Requirements: []karpv1.NodeSelectorRequirementWithMinValues{
				in(corev1.LabelInstanceTypeStable, instanceType, "another"),
				in(corev1.LabelTopologyZone, zone, "another"),
				in(karpv1.CapacityTypeLabelKey, f.capacityTypes()...),
			},
			Resources:   karpv1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
			ExpireAfter: karpv1.MustParseNillableDuration("Never"),
		},
	}
}

// capacityTypes returns the capacity types of the catalog's offerings; on-demand if it has none.
func (f *fixture) capacityTypes() []string {
	found := lo.Uniq(lo.FlatMap(f.catalog.Spec.InstanceTypes, func(t v1alpha1.InstanceType, _ int) []string {
		return lo.Map(t.Offerings, func(o v1alpha1.Offering, _ int) string { return string(o.CapacityType) })
	}))
	return lo.Ternary(len(found) > 0, found, []string{karpv1.CapacityTypeOnDemand})
}

// all returns the claims of this fixture.
func (f *fixture) all(ctx context.Context) []karpv1.NodeClaim {
	GinkgoHelper()
	list := &karpv1.NodeClaimList{}
	Expect(env.client.List(ctx, list, client.MatchingLabels{karpv1.NodePoolLabelKey: f.name})).To(Succeed())
	return list.Items
}

// machines returns the Machines of this fixture, including those that are being deleted.
func (f *fixture) machines(ctx context.Context) []clusterv1.Machine {
	GinkgoHelper()
	list := &clusterv1.MachineList{}
	Expect(env.client.List(ctx, list, client.MatchingLabels{v1alpha1.TemplateLabel: f.name})).To(Succeed())
	return list.Items
}

// resources returns the scalable resources of this fixture.
func (f *fixture) resources(ctx context.Context) []*scalable.Resource {
	GinkgoHelper()
	resources, err := scalable.List(ctx, env.uncached(), client.MatchingLabels{v1alpha1.TemplateLabel: f.name})
	Expect(err).NotTo(HaveOccurred())
	return resources
}

// resource returns the only scalable resource of this fixture.
func (f *fixture) resource(ctx context.Context) *scalable.Resource {
	GinkgoHelper()
	resources := f.resources(ctx)
	Expect(resources).To(HaveLen(1))
	Expect(resources[0].Kind().Name()).To(BeEquivalentTo(f.kind))
	return resources[0]
}

// machineSets returns the MachineSets of this fixture: there is one if it has a
// MachineDeployment.
func (f *fixture) machineSets(ctx context.Context) []clusterv1.MachineSet {
	GinkgoHelper()
	list := &clusterv1.MachineSetList{}
	Expect(env.client.List(ctx, list, client.MatchingLabels{v1alpha1.TemplateLabel: f.name})).To(Succeed())
	return list.Items
}

// maker waits for the object that creates Machines for the replicas of the scalable resource, and
// returns it: nothing is created while it is paused.
func (f *fixture) maker(ctx context.Context) client.Object {
	GinkgoHelper()
	var found client.Object
	Eventually(ctx, func(g Gomega) {
		if f.kind == machinePools {
			pools := f.simulatedPools(ctx)
			g.Expect(pools).To(HaveLen(1))
			g.Expect(pools[0].Status.InfrastructureMachineKind).NotTo(BeEmpty())
			found = &pools[0]
			return
		}
		sets := f.machineSets(ctx)
		g.Expect(sets).To(HaveLen(1))
		found = &sets[0]
	}).Should(Succeed())
	return found
}

// condition reads the template and returns one of its conditions.
func (f *fixture) condition(ctx context.Context, kind string) *status.Condition {
	GinkgoHelper()
	Expect(env.get(ctx, f.template)).To(Succeed())
	return f.template.StatusConditions().Get(kind)
}

// createResource creates the scalable resource of the fixture's offering, empty, like one that was
// left by an earlier claim.
func (f *fixture) createResource(ctx context.Context) *scalable.Resource {
	GinkgoHelper()
	generated := f.generate(ctx)
	for _, object := range generated.Objects {
		Expect(env.client.Create(ctx, object)).To(Succeed())
	}
	resource := generated.Resource
	resource.SetReplicas(0, time.Now())
	Expect(env.client.Create(ctx, resource.API())).To(Succeed())
	return resource
}

// generate returns what the operator generates for the fixture's offering.
func (f *fixture) generate(ctx context.Context) *generate.Generated {
	GinkgoHelper()
	base := &unstructured.Unstructured{}
	base.SetGroupVersionKind(infrav1.GroupVersion.WithKind(f.infrastructureRef("").Kind))
	Expect(env.client.Get(ctx, client.ObjectKeyFromObject(f.infrastructure), base)).To(Succeed())
	generator, err := generate.NewGenerator(served, f.template, generate.Bases{Infrastructure: base})
	Expect(err).NotTo(HaveOccurred())
	types, _ := catalog.TypesOf(f.template, nil, f.catalog)
	generated, err := generator.Generate(&types[0], types[0].Find(zone, karpv1.CapacityTypeOnDemand))
	Expect(err).NotTo(HaveOccurred())
	return generated
}
