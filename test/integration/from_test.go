// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/pattern"
)

// withPattern moves the settings of Machines from the template to a MachineDeployment without replicas,
// as a topology generates it, and creates that.
func (f *fixture) withPattern(ctx context.Context) *clusterv1.MachineDeployment {
	GinkgoHelper()
	pattern := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: served.Namespace, Name: f.name + "-x7k2p",
		Labels: map[string]string{clusterv1.ClusterNameLabel: served.Name, clusterv1.ClusterTopologyOwnedLabel: "", clusterv1.ClusterTopologyMachineDeploymentNameLabel: f.name},
	}}
	selected := map[string]string{clusterv1.ClusterNameLabel: served.Name, clusterv1.MachineDeploymentNameLabel: pattern.Name}
	pattern.Spec = clusterv1.MachineDeploymentSpec{ClusterName: served.Name, Replicas: new(int32(0)), Selector: metav1.LabelSelector{MatchLabels: selected}}
	machine := &pattern.Spec.Template
	machine.Labels = map[string]string{"team": "platform", clusterv1.ClusterTopologyOwnedLabel: "", clusterv1.ClusterNameLabel: served.Name, clusterv1.MachineDeploymentNameLabel: pattern.Name}
	machine.Spec = clusterv1.MachineSpec{
		ClusterName: served.Name, Version: "v1.36.2", Bootstrap: f.template.Spec.Template.Spec.Bootstrap,
		InfrastructureRef: *f.template.Spec.Template.Spec.InfrastructureRef,
	}
	f.template.Spec.Template = v1alpha1.MachineTemplate{From: &v1alpha1.MachineTemplateSource{MachineDeploymentTopology: f.name}}
	Expect(env.client.Create(ctx, pattern)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(env.client.Delete(ctx, pattern))).To(Succeed()) })
	return pattern
}

// rotate lets a pattern refer to a copy of its infrastructure template with another name, whose machines
// are of another type if that is given.
func (f *fixture) rotate(ctx context.Context, deployment *clusterv1.MachineDeployment, name, machineType string) {
	GinkgoHelper()
	rotated := f.infrastructure.DeepCopyObject().(client.Object)
	rotated.SetName(f.name + "-" + name)
	rotated.SetResourceVersion("")
	rotated.SetUID("")
	if machineType != "" {
		machineSpec(rotated).InstanceType = machineType
	}
	Expect(env.client.Create(ctx, rotated)).To(Succeed())
	before := deployment.Spec.Template.Spec.InfrastructureRef.Name
	env.change(ctx, deployment, func() { deployment.Spec.Template.Spec.InfrastructureRef.Name = rotated.GetName() })
	f.waitTaken(ctx, deployment)
	// A topology deletes the template that its MachineDeployment no longer uses.
	unused := f.infrastructure.DeepCopyObject().(client.Object)
	unused.SetName(before)
	Expect(env.client.Delete(ctx, unused)).To(Succeed())
}

// waitTaken waits until the template is Ready with what its pattern has now.
func (f *fixture) waitTaken(ctx context.Context, deployment *clusterv1.MachineDeployment) {
	GinkgoHelper()
	want := pattern.Observe(deployment).ObservedMachineTemplate
	Eventually(ctx, func(g Gomega) {
		g.Expect(env.get(ctx, f.template)).To(Succeed())
		g.Expect(f.template.StatusConditions().Root().IsTrue()).To(BeTrue(), "%+v", f.template.Status.Conditions)
		g.Expect(f.template.Status.From).To(HaveValue(Equal(want)))
	}).Should(Succeed())
}

var _ = Describe("A template that follows a MachineDeployment", func() {
	// drifted returns why a claim is outdated.
	drifted := func(ctx context.Context, claim *karpv1.NodeClaim) string {
		GinkgoHelper()
		reason, err := env.cloudProvider().IsDrifted(ctx, claim)
		Expect(err).NotTo(HaveOccurred())
		return string(reason)
	}

	It("replaces Nodes if its content changes, and only then", func(ctx SpecContext) {
		f := machineDeployments.newFixture("follows")
		pattern := f.withPattern(ctx)
		f.createReady(ctx)
		Expect(f.condition(ctx, v1alpha1.ConditionVersionReady).Message).To(ContainSubstring("v1.36.2, which is that of MachineDeployment " + pattern.Name))
		claim := f.launchOne(ctx)
		env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		machine := env.waitMachine(ctx, claim)
		Expect(machine.Spec.Version).To(Equal("v1.36.2"))
		Expect(machine.Labels).To(HaveKeyWithValue("team", "platform"))
		Expect(machine.Labels).NotTo(HaveKey(clusterv1.ClusterTopologyOwnedLabel))
		resource := f.resource(ctx)

		By("giving its template another name")
		f.rotate(ctx, pattern, "renamed", "")
		f.waitCondition(ctx, v1alpha1.ConditionNodesCurrent, "")
		Expect(drifted(ctx, claim)).To(BeEmpty())
		next := f.launchOne(ctx)
		env.waitMachine(ctx, next)
		Expect(f.resource(ctx).GetUID()).To(Equal(resource.GetUID()), "the MachineDeployment of both NodeClaims")

		By("changing what is changed in place")
		env.change(ctx, pattern, func() { pattern.Spec.Template.Labels["team"] = "data" })
		Eventually(ctx, func() map[string]string { return env.waitMachine(ctx, claim).Labels }).Should(HaveKeyWithValue("team", "data"))
		Expect(drifted(ctx, claim)).To(BeEmpty())

		By("changing the content of its template")
		f.rotate(ctx, pattern, "changed", "faster")
		Eventually(ctx, func() string { return drifted(ctx, claim) }).Should(Equal(v1alpha1.DriftInfrastructure))
		f.waitCondition(ctx, v1alpha1.ConditionNodesCurrent, v1alpha1.ReasonNodesOutdated, v1alpha1.DriftInfrastructure)

		By("changing its version, too")
		env.change(ctx, pattern, func() { pattern.Spec.Template.Spec.Version = "v1.36.3" })
		f.waitTaken(ctx, pattern)
		Expect(f.template.Status.Version).To(Equal("v1.36.3"))
		Eventually(ctx, func() string { return drifted(ctx, claim) }).Should(Equal(v1alpha1.DriftVersion))
		latest := f.launchOne(ctx)
		Eventually(ctx, func() string { return env.waitMachine(ctx, latest).Spec.Version }).Should(Equal("v1.36.3"))

		By("setting the same in the template")
		env.change(ctx, f.template, func() { f.template.Spec.Template.Spec.Version = "v1.36.2" })
		f.waitReady(ctx)
		Eventually(ctx, func() string { return drifted(ctx, claim) }).Should(Equal(v1alpha1.DriftInfrastructure))

		By("having written nothing to the MachineDeployment")
		Expect(env.get(ctx, pattern)).To(Succeed())
		Expect(pattern.Spec.Replicas).To(HaveValue(BeZero()))
		for key := range pattern.Labels {
			Expect(strings.HasPrefix(key, v1alpha1.Group+"/")).To(BeFalse(), key)
		}
		for _, manager := range pattern.ManagedFields {
			Expect(manager.Manager).NotTo(ContainSubstring("karpenter"))
		}
	})

	It("keeps its Nodes and launches nothing while that does not exist", func(ctx SpecContext) {
		f := machineDeployments.newFixture("orphan")
		pattern := f.withPattern(ctx)
		f.createReady(ctx)
		claim := f.launchOne(ctx)
		env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		machine, resource := env.waitMachine(ctx, claim), f.resource(ctx)

		// Without the MachineDeployment, the template has no infrastructure and another version.
		env.delete(ctx, pattern)
		stays := func(g Gomega) {
			reason, err := env.cloudProvider().IsDrifted(ctx, claim)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(reason).To(BeEmpty())
			g.Expect(env.get(ctx, claim)).To(Succeed())
			g.Expect(claim.DeletionTimestamp).To(BeNil())
			g.Expect(env.get(ctx, machine)).To(Succeed())
			g.Expect(machine.DeletionTimestamp).To(BeNil())
			g.Expect(f.resource(ctx).API()).To(HaveField("ObjectMeta.Generation", resource.GetGeneration()), "the generated MachineDeployment")
		}
		Eventually(ctx, func(g Gomega) bool {
			stays(g)
			g.Expect(env.get(ctx, f.template)).To(Succeed())
			return f.template.Status.From == nil
		}).Should(BeTrue())
		f.waitNotReady(ctx, v1alpha1.ConditionFromReady, v1alpha1.ReasonReferenceNotFound, "spec.template.from", "MachineDeployment orphan", "spec.topology.workers.machineDeployments")
		Expect(f.offerings(ctx)).To(HaveLen(1))
		Expect(drifted(ctx, claim)).To(BeEmpty())
		env.waitGone(ctx, f.launchOne(ctx))
		Expect(f.machines(ctx)).To(HaveLen(1))
		Expect(env.exists(ctx, claim)).To(BeTrue())

		By("changing what is changed in place")
		env.change(ctx, f.template, func() { f.template.Spec.Template.Metadata.Labels = map[string]v1alpha1.LabelValue{"own": "yes"} })
		f.waitNotReady(ctx, v1alpha1.ConditionFromReady, v1alpha1.ReasonReferenceNotFound, "MachineDeployment orphan")
		stays(Default)

		By("naming one that was generated")
		generated := f.resource(ctx).GetName()
		env.change(ctx, f.template, func() { f.template.Spec.Template.From = &v1alpha1.MachineTemplateSource{MachineDeployment: generated} })
		f.waitNotReady(ctx, v1alpha1.ConditionFromReady, v1alpha1.ReasonReferenceUnusable, generated, "was generated from KarpenterMachineTemplate orphan")
		Expect(drifted(ctx, claim)).To(BeEmpty())

		By("creating it again with another name")
		again := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: pattern.Namespace, Name: f.name + "-q9w8e", Labels: pattern.Labels}, Spec: pattern.Spec}
		Expect(env.client.Create(ctx, again)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(env.client.Delete(ctx, again))).To(Succeed()) })
		env.change(ctx, f.template, func() {
			f.template.Spec.Template.From = &v1alpha1.MachineTemplateSource{MachineDeploymentTopology: f.name}
		})
		f.waitReady(ctx)
		f.waitCondition(ctx, v1alpha1.ConditionNodesCurrent, "")
		Expect(drifted(ctx, claim)).To(BeEmpty())
		env.waitMachine(ctx, f.launchOne(ctx))
		Eventually(ctx, func() map[string]string { return env.waitMachine(ctx, claim).Labels }).Should(And(HaveKeyWithValue("own", "yes"), HaveKeyWithValue("team", "platform")))
	})
})
