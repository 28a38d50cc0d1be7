// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

var _ = Describe("A MachineDeployment that discovery finds", func() {
	It("creates Machines for claims, and keeps its unmanaged Machines", func(ctx SpecContext) {
		f := machineDeployments.newFixture("adopted").delays(0, 0, 0)
		existing := f.existing(2)
		f.createFinding(ctx, existing)
		machines := func() []clusterv1.Machine { return machinesOf(ctx, existing) }
		Eventually(ctx, func(g Gomega) {
			g.Expect(machines()).To(HaveLen(2))
			for _, machine := range machines() {
				g.Expect(machine.Status.NodeRef.Name).NotTo(BeEmpty())
			}
		}).Should(Succeed())
		own := machines()
		untouched := func() {
			GinkgoHelper()
			for _, before := range own {
				now := before.DeepCopy()
				Expect(env.get(ctx, now)).To(Succeed(), "Machine %s is unmanaged", before.Name)
				Expect(now.DeletionTimestamp).To(BeNil())
				Expect(now.Labels).To(Equal(before.Labels))
				Expect(now.Annotations).To(Equal(before.Annotations))
			}
		}
		Expect(env.get(ctx, existing)).To(Succeed())
		Expect(existing.Annotations).NotTo(HaveKey(v1alpha1.AdoptedAnnotation), "nothing is changed before its first use")

		By("launching two claims")
		claims := f.launch(ctx, 2)
		for _, claim := range claims {
			env.waitFor(ctx, claim, karpv1.ConditionTypeRegistered)
			machine := env.waitMachine(ctx, claim)
			Expect(machine.Labels).To(HaveKeyWithValue(clusterv1.MachineDeploymentNameLabel, existing.Name))
			Expect(machine.Annotations).To(HaveKey(v1alpha1.DrainHookAnnotation))
		}
		Expect(env.get(ctx, existing)).To(Succeed())
		Expect(existing.Annotations).To(HaveKeyWithValue(v1alpha1.UnmanagedReplicasAnnotation, "2"))
		Expect(lo.FromPtr(existing.Spec.Replicas)).To(BeEquivalentTo(4))
		Expect(existing.Spec.Template.Labels).NotTo(HaveKey(v1alpha1.TemplateLabel), "nothing is rolled out")
		untouched()

		By("deleting one claim: only its Machine is deleted")
		gone := env.waitMachine(ctx, claims[0])
		env.delete(ctx, claims[0])
		env.waitGone(ctx, gone)
		env.waitGone(ctx, claims[0])
		Eventually(ctx, machines).Should(HaveLen(3))
		untouched()
		env.waitMachine(ctx, claims[1])

		By("raising replicas by hand: they are reset, with an event")
		env.change(ctx, existing, func() { existing.Spec.Replicas = new(int32(5)) })
		Eventually(ctx, func() []string { return env.events(ctx, "MachineDeployment", existing.Name, "ReplicasReset") }).
			Should(ContainElement(ContainSubstring("more than its 2 unmanaged replicas")))
		Eventually(ctx, func(g Gomega) {
			g.Expect(env.get(ctx, existing)).To(Succeed())
			g.Expect(lo.FromPtr(existing.Spec.Replicas)).To(BeEquivalentTo(3))
			g.Expect(machines()).To(HaveLen(3))
		}).Should(Succeed())
		untouched()
		env.waitMachine(ctx, claims[1])

		By("deleting the template with the last claim: the adoption ends")
		env.delete(ctx, claims[1])
		env.waitGone(ctx, claims[1])
		env.delete(ctx, f.template)
		Eventually(ctx, func(g Gomega) {
			g.Expect(env.get(ctx, existing)).To(Succeed())
			g.Expect(existing.Annotations).NotTo(HaveKey(v1alpha1.AdoptedAnnotation))
			g.Expect(existing.Labels).NotTo(HaveKey(v1alpha1.TemplateLabel))
			g.Expect(lo.FromPtr(existing.Spec.Replicas)).To(BeEquivalentTo(2))
		}).Should(Succeed())
		untouched()
	})

	It("serves claims only while a user of the management cluster allows it", func(ctx SpecContext) {
		f := machineDeployments.newFixture("consent").delays(0, 0, 0)
		existing := f.existing(1)
		delete(existing.Annotations, v1alpha1.AdoptableAnnotation)
		f.template.Spec.CatalogRefs = nil
		f.template.Spec.Discovery = f.finding(existing)
		Expect(env.client.Create(ctx, existing)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { env.delete(ctx, existing); env.waitGone(ctx, existing) })
		f.create(ctx)
		words := []string{"MachineDeployment fleet/" + existing.Name, v1alpha1.AdoptableAnnotation}
		f.waitCondition(ctx, v1alpha1.ConditionOfferingsValid, v1alpha1.ReasonAdoptionNotAllowed, words...)
		Expect(f.offerings(ctx)).To(BeEmpty())

		By("allowing it")
		env.annotate(ctx, existing, v1alpha1.AdoptableAnnotation, new("true"))
		f.waitCondition(ctx, v1alpha1.ConditionOfferingsValid, "")
		f.waitReady(ctx)
		claim := f.launchOne(ctx)
		machine := env.waitMachine(ctx, claim)

		By("forbidding it: the claim keeps its Machine, and there is no other")
		env.annotate(ctx, existing, v1alpha1.AdoptableAnnotation, nil)
		f.waitCondition(ctx, v1alpha1.ConditionOfferingsValid, v1alpha1.ReasonAdoptionNotAllowed, words...)
		Expect(f.offerings(ctx)).To(Equal(map[string]bool{instanceType + "/" + zone + "/on-demand": false}))
		Expect(env.waitMachine(ctx, claim).UID).To(Equal(machine.UID))

		By("deleting the claim: the adoption ends")
		env.delete(ctx, claim)
		env.waitGone(ctx, claim)
		Eventually(ctx, func(g Gomega) {
			g.Expect(env.get(ctx, existing)).To(Succeed())
			g.Expect(existing.Annotations).NotTo(HaveKey(v1alpha1.AdoptedAnnotation))
			g.Expect(lo.FromPtr(existing.Spec.Replicas)).To(BeEquivalentTo(1))
		}).Should(Succeed())
	})

	It("is at its limit with its unmanaged Machines", func(ctx SpecContext) {
		f := machineDeployments.newFixture("adoptedlimit").delays(0, 0, never)
		existing := f.existing(2)
		existing.Annotations["cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size"] = "3"
		f.createFinding(ctx, existing)
		first := f.launchOne(ctx)
		env.waitMachine(ctx, first)
		second := f.launchOne(ctx)
		env.waitGone(ctx, second)
		Expect(env.get(ctx, existing)).To(Succeed())
		Expect(lo.FromPtr(existing.Spec.Replicas)).To(BeEquivalentTo(3))
	})
})

// createFinding creates a MachineDeployment and the fixture, whose template offers only that one.
func (f *fixture) createFinding(ctx context.Context, existing *clusterv1.MachineDeployment) {
	GinkgoHelper()
	f.template.Spec.CatalogRefs = nil
	f.template.Spec.Discovery = f.finding(existing)
	Expect(env.client.Create(ctx, existing)).To(Succeed())
	DeferCleanup(func(ctx context.Context) { env.delete(ctx, existing); env.waitGone(ctx, existing) })
	f.createReady(ctx)
}

// finding returns a discovery that finds a MachineDeployment.
func (f *fixture) finding(existing *clusterv1.MachineDeployment) *v1alpha1.Discovery {
	return &v1alpha1.Discovery{MachineDeployments: &v1alpha1.MachineDeploymentDiscovery{
		Selector: metav1.LabelSelector{MatchLabels: existing.Labels},
	}}
}

// existing returns a MachineDeployment that a platform team has created for cluster-autoscaler,
// with the fixture's instance type and zone.
func (f *fixture) existing(replicas int32) *clusterv1.MachineDeployment {
	name := f.name + "-existing"
	labels := map[string]string{clusterv1.ClusterNameLabel: served.Name, clusterv1.MachineDeploymentNameLabel: name}
	return &clusterv1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: served.Namespace, Name: name, Labels: map[string]string{"discover": f.name, clusterv1.ClusterNameLabel: served.Name},
			Annotations: map[string]string{
				"capacity.cluster-autoscaler.kubernetes.io/cpu":    "4",
				"capacity.cluster-autoscaler.kubernetes.io/memory": "8Gi",
				v1alpha1.AdoptableAnnotation:                       "true",
				v1alpha1.DiscoveredInstanceTypeAnnotation:          instanceType,
				v1alpha1.DiscoveredPriceAnnotation:                 "0.1",
			},
		},
		Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: served.Name,
			Replicas:    &replicas,
			Selector:    metav1.LabelSelector{MatchLabels: labels},
			// Cluster API's webhook sets it, which does not run here.
			Rollout: clusterv1.MachineDeploymentRolloutSpec{Strategy: clusterv1.MachineDeploymentRolloutStrategy{
				Type: clusterv1.RollingUpdateMachineDeploymentStrategyType,
				RollingUpdate: clusterv1.MachineDeploymentRolloutStrategyRollingUpdate{
					MaxSurge: new(intstr.FromInt32(1)), MaxUnavailable: new(intstr.FromInt32(0)),
				},
			}},
			Template: clusterv1.MachineTemplateSpec{
				ObjectMeta: clusterv1.ObjectMeta{Labels: labels},
				Spec: clusterv1.MachineSpec{
					ClusterName: served.Name, FailureDomain: zone,
					Bootstrap:         clusterv1.Bootstrap{DataSecretName: lo.ToPtr("bootstrap")},
					InfrastructureRef: *machineDeployments.infrastructureRef(f.name),
				},
			},
		},
	}
}

// machinesOf returns the Machines of a MachineDeployment.
func machinesOf(ctx context.Context, resource *clusterv1.MachineDeployment) []clusterv1.Machine {
	GinkgoHelper()
	list := &clusterv1.MachineList{}
	Expect(env.client.List(ctx, list, client.InNamespace(resource.Namespace), client.MatchingLabels{clusterv1.MachineDeploymentNameLabel: resource.Name})).To(Succeed())
	return list.Items
}
