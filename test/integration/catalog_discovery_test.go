// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

const (
	cpuAnnotation    = "capacity.cluster-autoscaler.kubernetes.io/cpu"
	memoryAnnotation = "capacity.cluster-autoscaler.kubernetes.io/memory"
	discoveredLabel  = "discovered-by"
)

// offerings returns the offerings of a fixture that the operator reports to Karpenter: by instance
// type, zone and capacity type, whether it is available.
func (f *fixture) offerings(ctx context.Context) map[string]bool {
	GinkgoHelper()
	instanceTypes, err := env.cloudProvider().GetInstanceTypes(ctx, f.pool)
	Expect(err).NotTo(HaveOccurred())
	offerings := map[string]bool{}
	for _, instanceType := range instanceTypes {
		for _, offering := range instanceType.Offerings {
			offerings[instanceType.Name+"/"+offering.Zone()+"/"+offering.CapacityType()] = offering.Available
		}
	}
	return offerings
}

// instanceType returns an instance type that the operator reports to Karpenter.
func (f *fixture) instanceType(ctx context.Context, name string) *cloudprovider.InstanceType {
	GinkgoHelper()
	instanceTypes, err := env.cloudProvider().GetInstanceTypes(ctx, f.pool)
	Expect(err).NotTo(HaveOccurred())
	found, _ := lo.Find(instanceTypes, func(it *cloudprovider.InstanceType) bool { return it.Name == name })
	return found
}

var _ = Describe("Discovery", func() {
	const own = instanceType + "/" + zone + "/" + karpv1.CapacityTypeOnDemand

	It("finds infrastructure templates by their labels and follows their changes", func(ctx SpecContext) {
		f := machineDeployments.newFixture("discovery")
		labels := map[string]string{discoveredLabel: f.name}
		f.template.Spec.Discovery = &v1alpha1.Discovery{InfrastructureTemplates: &v1alpha1.InfrastructureTemplateDiscovery{
			APIGroup: infrav1.GroupVersion.Group, Kind: "SimulatedMachineTemplate", Selector: metav1.LabelSelector{MatchLabels: labels},
		}}
		f.createReady(ctx)
		Expect(f.template.Status.InstanceTypes).To(BeEquivalentTo(1))

		By("creating one, whose provider reports its capacity")
		large := f.infrastructure.(*infrav1.SimulatedMachineTemplate).DeepCopy()
		large.ObjectMeta = metav1.ObjectMeta{Namespace: served.Namespace, Name: "discovery-large", Labels: labels, Annotations: map[string]string{
			v1alpha1.DiscoveredInstanceTypeAnnotation: "large", v1alpha1.DiscoveredZonesAnnotation: "zone-a,zone-b", v1alpha1.DiscoveredPriceAnnotation: "0.5",
		}}
		large.Spec.Template.Spec.Capacity[corev1.ResourceCPU] = resource.MustParse("16")
		large.Spec.Template.Spec.Architecture, large.Spec.Template.Spec.InstanceType = "arm64", "large"
		Expect(env.client.Create(ctx, large)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(env.client.Delete(ctx, large))).To(Succeed()) })
		Eventually(ctx, func(g Gomega) {
			g.Expect(f.offerings(ctx)).To(Equal(map[string]bool{own: true, "large/zone-a/on-demand": true, "large/zone-b/on-demand": true}))
			g.Expect(env.get(ctx, f.template)).To(Succeed())
			g.Expect(f.template.Status.InstanceTypes).To(BeEquivalentTo(2))
			g.Expect(f.template.Status.Offerings).To(BeEquivalentTo(3))
		}).Should(Succeed())
		found := f.instanceType(ctx, "large")
		Expect(found.Capacity.Cpu().Value()).To(BeEquivalentTo(16))
		Expect(found.Requirements.Get(corev1.LabelArchStable).Any()).To(Equal("arm64"))

		By("launching it")
		claim := f.newClaim()
		claim.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"zone-b"}}}
		claim.Spec.Resources.Requests[corev1.ResourceCPU] = resource.MustParse("10")
		Expect(env.client.Create(ctx, claim)).To(Succeed())
		env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		Expect(claim.Labels).To(HaveKeyWithValue(corev1.LabelInstanceTypeStable, "large"))
		Expect(claim.Annotations).To(HaveKeyWithValue(v1alpha1.PriceAnnotation, "0.5"))
		machine := env.waitMachine(ctx, claim)
		Expect(machine.Spec.FailureDomain).To(Equal("zone-b"))
		node := env.nodeOf(ctx, claim.Status.ProviderID)
		Expect(node.Status.Capacity.Cpu().Value()).To(BeEquivalentTo(16))
		Expect(node.Labels).To(HaveKeyWithValue(corev1.LabelArchStable, "arm64"))
		env.delete(ctx, claim)
		env.waitGone(ctx, claim)

		By("giving it a wrong annotation, and another one")
		env.annotate(ctx, large, v1alpha1.DiscoveredPriceAnnotation, new("cheap"))
		f.waitCondition(ctx, v1alpha1.ConditionOfferingsValid, v1alpha1.ReasonInstanceTypesInvalid,
			"SimulatedMachineTemplate fleet/discovery-large", v1alpha1.DiscoveredPriceAnnotation, `"cheap"`)
		Expect(f.offerings(ctx)).To(Equal(map[string]bool{own: true}))
		Expect(f.template.StatusConditions().Root().IsTrue()).To(BeTrue())
		env.annotate(ctx, large, v1alpha1.DiscoveredPriceAnnotation, nil)
		f.waitCondition(ctx, v1alpha1.ConditionOfferingsValid, "")

		By("contradicting the catalog")
		env.annotate(ctx, large, v1alpha1.DiscoveredInstanceTypeAnnotation, new(instanceType))
		f.waitCondition(ctx, v1alpha1.ConditionOfferingsValid, v1alpha1.ReasonSourcesConflict, "discovery-large contradicts InstanceTypeCatalog discovery", "capacity.cpu: 16 instead of 4", "InstanceTypeCatalog discovery takes precedence")
		Expect(f.offerings(ctx)).To(Equal(map[string]bool{own: true}))

		By("deleting it")
		env.delete(ctx, large)
		f.waitCondition(ctx, v1alpha1.ConditionOfferingsValid, "")
		Expect(f.offerings(ctx)).To(Equal(map[string]bool{own: true}))
	})

	It("finds MachineDeployments, except for those that the operator has generated", func(ctx SpecContext) {
		f := machineDeployments.newFixture("discoverymd")
		f.template.Spec.Discovery = &v1alpha1.Discovery{MachineDeployments: &v1alpha1.MachineDeploymentDiscovery{}}
		f.createReady(ctx)
		f.createResource(ctx)
		existing := &clusterv1.MachineDeployment{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: served.Namespace, Name: "discoverymd-existing", Labels: map[string]string{clusterv1.ClusterNameLabel: served.Name},
				Annotations: map[string]string{v1alpha1.AdoptableAnnotation: "true", cpuAnnotation: "2", memoryAnnotation: "3Gi", clusterv1.AutoscalerMaxSizeAnnotation: "3"},
			},
			Spec: clusterv1.MachineDeploymentSpec{
				ClusterName: served.Name, Replicas: new(int32(0)), Selector: metav1.LabelSelector{MatchLabels: map[string]string{"md": "existing"}},
				Template: clusterv1.MachineTemplateSpec{
					ObjectMeta: clusterv1.ObjectMeta{Labels: map[string]string{"md": "existing", "node-role.kubernetes.io/old": ""}},
					Spec: clusterv1.MachineSpec{
						ClusterName: served.Name, FailureDomain: "zone-c", InfrastructureRef: *machineDeployments.infrastructureRef(f.name),
						Bootstrap: clusterv1.Bootstrap{DataSecretName: new("bootstrap")},
					},
				},
			},
		}
		Expect(env.client.Create(ctx, existing)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(env.client.Delete(ctx, existing))).To(Succeed()) })
		Eventually(ctx, func() map[string]bool { return f.offerings(ctx) }).Should(Equal(map[string]bool{own: true, "discoverymd-existing/zone-c/on-demand": true}))
		found := f.instanceType(ctx, existing.Name)
		Expect(found.Capacity.Cpu().Value()).To(BeEquivalentTo(2))
		Expect(found.Capacity.Memory().String()).To(Equal("3Gi"))
		Expect(found.Requirements.Has("node-role.kubernetes.io/old")).To(BeTrue())
		Expect(found.Requirements.Has("md")).To(BeFalse(), "Nodes do not carry it")
		env.delete(ctx, existing)
		Eventually(ctx, func() map[string]bool { return f.offerings(ctx) }).Should(Equal(map[string]bool{own: true}))
	})
})

// waitCondition waits until a condition is False with a reason and a message with all given words;
// without a reason, until it is True.
func (f *fixture) waitCondition(ctx context.Context, condition, reason string, words ...string) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		found := f.condition(ctx, condition)
		g.Expect(found).NotTo(BeNil(), "%s does not exist", condition)
		if reason == "" {
			g.Expect(found.IsTrue()).To(BeTrue(), "%s is %s: %s", condition, found.Status, found.Message)
			return
		}
		g.Expect(found.IsFalse()).To(BeTrue(), "%s is %s", condition, found.Status)
		g.Expect(found.Reason).To(Equal(reason))
		for _, word := range words {
			g.Expect(found.Message).To(ContainSubstring(word))
		}
	}).Should(Succeed())
}
