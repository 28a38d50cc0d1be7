// SPDX-License-Identifier: Apache-2.0

package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

var _ = forEachKind("The catalog of a template", func(k kind) {
	const own = instanceType + "/" + zone + "/" + karpv1.CapacityTypeOnDemand

	It("lists a removed type until its last claim is deleted", func(ctx SpecContext) {
		f := k.newFixture("removedtype").createReady(ctx)
		claim := f.launchOne(ctx)
		env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		env.change(ctx, f.catalog, func() { f.catalog.Spec.InstanceTypes[0].Name = "successor" })
		Eventually(ctx, func() map[string]bool { return f.offerings(ctx) }).Should(Equal(map[string]bool{"successor/" + zone + "/on-demand": true, own: false}))
		allocatable := f.instanceType(ctx, instanceType).Allocatable()
		Expect(allocatable.Cpu().Value()).To(Equal(claim.Status.Allocatable.Cpu().Value()))
		Expect(env.exists(ctx, claim)).To(BeTrue())
		env.delete(ctx, claim)
		env.waitGone(ctx, claim)
		Eventually(ctx, func() map[string]bool { return f.offerings(ctx) }).Should(Equal(map[string]bool{"successor/" + zone + "/on-demand": true}))
	})

	It("closes an offering that is at its limit", func(ctx SpecContext) {
		f := k.newFixture("limited")
		f.catalog.Spec.InstanceTypes[0].Offerings[0].MaxMachines = new(int32(1))
		f.createReady(ctx)
		claim := f.launchOne(ctx)
		env.waitMachine(ctx, claim)
		Eventually(ctx, func(g Gomega) {
			g.Expect(env.get(ctx, f.template)).To(Succeed())
			g.Expect(f.template.Status.NodeClaims).To(BeEquivalentTo(1))
			g.Expect(f.template.Status.LimitedOfferings).To(ConsistOf(v1alpha1.LimitedOffering{
				InstanceType: instanceType, Zone: zone, CapacityType: karpv1.CapacityTypeOnDemand, NodeClaims: 1, Limit: 1,
			}))
			g.Expect(f.offerings(ctx)).To(Equal(map[string]bool{own: false}))
		}).Should(Succeed())

		By("launching another")
		env.waitGone(ctx, f.launchOne(ctx))
		Expect(f.machines(ctx)).To(HaveLen(1))

		By("deleting a claim")
		env.delete(ctx, claim)
		Eventually(ctx, func() map[string]bool { return f.offerings(ctx) }).Should(Equal(map[string]bool{own: true}))
		env.waitMachine(ctx, f.launchOne(ctx))
	})

	It("uses what Nodes report", func(ctx SpecContext) {
		f := k.newFixture("learns")
		spec := f.machine()
		spec.Capacity = spec.Capacity.DeepCopy() // it is shared with that of the catalog
		spec.Capacity[corev1.ResourceMemory] = resource.MustParse("7Gi")
		spec.Reserved = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
		f.createReady(ctx)
		first := f.launchOne(ctx)
		env.waitFor(ctx, first, karpv1.ConditionTypeInitialized)
		Expect(first.Status.Capacity.Memory().String()).To(Equal("8Gi"))
		f.waitCondition(ctx, v1alpha1.ConditionCapacityAccurate, v1alpha1.ReasonCapacityDiffers, "memory of standard: declared 8Gi, observed 7Gi")
		Expect(f.template.Status.ObservedCapacity).To(HaveLen(1))
		Expect(f.template.StatusConditions().Root().IsTrue()).To(BeTrue())
		Eventually(ctx, func() string {
			allocatable := f.instanceType(ctx, instanceType).Allocatable()
			return allocatable.Memory().String()
		}).Should(Equal("6Gi"))
		second := f.launchOne(ctx)
		env.waitFor(ctx, second, karpv1.ConditionTypeLaunched)
		Expect(second.Status.Capacity.Memory().String()).To(Equal("7Gi"))

		By("changing what Nodes are created from")
		env.change(ctx, f.template, func() { f.template.Spec.Kubelet = &v1alpha1.KubeletConfiguration{MaxPods: new(int32(50))} })
		f.waitCondition(ctx, v1alpha1.ConditionCapacityAccurate, "")
		Expect(f.template.Status.ObservedCapacity).To(BeEmpty())
	})

	It("uses the devices that Nodes publish", func(ctx SpecContext) {
		f := k.newFixture("devices").createReady(ctx)
		claim := f.launchOne(ctx)
		env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		node := env.nodeOf(ctx, claim.Status.ProviderID)
		slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node.Name + "-gpus"}, Spec: resourcev1.ResourceSliceSpec{
			Driver: "gpu.example.com", NodeName: &node.Name, Pool: resourcev1.ResourcePool{Name: node.Name, Generation: 1, ResourceSliceCount: 1},
			Devices: []resourcev1.Device{{Name: "gpu-0"}, {Name: "gpu-1"}},
		}}
		Expect(env.client.Create(ctx, slice)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(env.client.Delete(ctx, slice)).To(Succeed()) })
		Eventually(ctx, func() []int {
			return lo.Map(f.instanceType(ctx, instanceType).DynamicResources.ResourceSliceTemplates, func(s *cloudprovider.ResourceSliceTemplate, _ int) int { return len(s.Devices) })
		}).Should(Equal([]int{2}))
		Expect(env.get(ctx, f.template)).To(Succeed())
		Expect(f.template.Status.ObservedDevices).To(HaveLen(1))
		Expect(f.template.Status.ObservedDevices[0].Devices).To(Equal([]v1alpha1.Device{{Driver: "gpu.example.com", Name: "gpu", Count: new(int32(2))}}))
	})

	It("gives Nodes the labels of their instance type, whatever core expected", func(ctx SpecContext) {
		const disk = "disk.example.com/kind"
		f := k.newFixture("labels")
		f.catalog.Spec.InstanceTypes[0].Labels = map[string]v1alpha1.LabelValue{disk: "ssd"}
		f.createReady(ctx)
		claim := f.newClaim()
		claim.Labels[disk] = "hdd" // as for a NodePool that requires one of both
		Expect(env.client.Create(ctx, claim)).To(Succeed())
		env.waitFor(ctx, claim, karpv1.ConditionTypeRegistered)
		Expect(claim.Labels).To(HaveKeyWithValue(disk, "ssd"))
		Expect(claim.Labels).To(HaveKeyWithValue(v1alpha1.InstanceCPULabel, "4"))
		node := env.nodeOf(ctx, claim.Status.ProviderID)
		Expect(node.Labels).To(HaveKeyWithValue(disk, "ssd"))
		Expect(node.Labels).To(HaveKeyWithValue(v1alpha1.InstanceMemoryLabel, "8192"))
	})

	It("reports that a Node joined without the taint while that Node exists", func(ctx SpecContext) {
		good := k.newFixture("tainted").createReady(ctx)
		env.waitFor(ctx, good.launchOne(ctx), karpv1.ConditionTypeRegistered)
		good.waitCondition(ctx, v1alpha1.ConditionNodesTainted, "")

		f := k.newFixture("untainted").delays(0, 0, never).createReady(ctx)
		claim := f.launchOne(ctx)
		Eventually(ctx, func() string { return env.providerID(ctx, claim) }).Should(HavePrefix("sim://"))
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "untainted-node"},
			Spec:       corev1.NodeSpec{ProviderID: env.providerID(ctx, claim)},
		}
		Expect(env.client.Create(ctx, node)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(env.client.Delete(ctx, node))).To(Succeed()) })
		env.waitFor(ctx, claim, karpv1.ConditionTypeRegistered)
		f.waitCondition(ctx, v1alpha1.ConditionNodesTainted, v1alpha1.ReasonTaintMissing, "karpenter.sh/unregistered:NoExecute", node.Name)
		Expect(f.template.StatusConditions().Root().IsTrue()).To(BeTrue())
		Expect(good.condition(ctx, v1alpha1.ConditionNodesTainted).IsTrue()).To(BeTrue())

		env.delete(ctx, claim)
		env.waitGone(ctx, claim)
		f.waitCondition(ctx, v1alpha1.ConditionNodesTainted, "")
	})
})
