// SPDX-License-Identifier: Apache-2.0

package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

var _ = forEachKind("A change that replaces no Machine", func(k kind) {
	It("reaches the existing scalable resource and its Machine", func(ctx SpecContext) {
		f := k.newFixture("inplace").createReady(ctx)
		claim := f.launchOne(ctx)
		env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		machine, resource := env.waitMachine(ctx, claim), f.resource(ctx)
		machines := f.watchMachines(ctx)
		env.change(ctx, f.template, func() {
			f.template.Spec.Template.Metadata = v1alpha1.MachineMetadata{Labels: map[string]v1alpha1.LabelValue{"team": "platform"}, Annotations: map[string]string{"note": "hello"}}
			f.template.Spec.Template.Spec.Deletion = &clusterv1.MachineDeletionSpec{NodeDeletionTimeoutSeconds: new(int32(77))}
		})
		Eventually(ctx, func(g Gomega) {
			g.Expect(env.get(ctx, machine)).To(Succeed())
			g.Expect(machine.Labels).To(HaveKeyWithValue("team", "platform"))
			g.Expect(machine.Annotations).To(HaveKeyWithValue("note", "hello"))
			g.Expect(f.resource(ctx).MachineTemplate().Spec.Deletion.NodeDeletionTimeoutSeconds).To(HaveValue(BeEquivalentTo(77)))
			if _, is := resource.API().(*clusterv1.MachineDeployment); is {
				g.Expect(machine.Spec.Deletion.NodeDeletionTimeoutSeconds).To(HaveValue(BeEquivalentTo(77)))
			}
		}).Should(Succeed())

		By("removing them again")
		env.change(ctx, f.template, func() {
			f.template.Spec.Template.Metadata, f.template.Spec.Template.Spec.Deletion = v1alpha1.MachineMetadata{}, nil
		})
		Eventually(ctx, func(g Gomega) {
			g.Expect(env.get(ctx, machine)).To(Succeed())
			g.Expect(machine.Labels).NotTo(HaveKey("team"))
			g.Expect(machine.Annotations).NotTo(HaveKey("note"))
			g.Expect(machine.Labels).To(HaveKeyWithValue(v1alpha1.NodeClaimUIDLabel, string(claim.UID)), "its link")
		}).Should(Succeed())
		Expect(machines.everCreated()).To(ConsistOf(machine.Name))
		Expect(machines.everDeleted()).To(BeEmpty())
		Expect(f.resource(ctx).GetName()).To(Equal(resource.GetName()))
	})
})
