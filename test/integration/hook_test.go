// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
)

// The behavior of Cluster API with a pre-drain hook from the annotations of a MachineDeployment's
// template.
var _ = Describe("A pre-drain hook of a MachineDeployment's Machines", func() {
	const hook = clusterv1.PreDrainDeleteHookAnnotationPrefix + "/karpenter"

	// await waits until a Machine has the annotation, or lacks it.
	await := func(ctx context.Context, machine *clusterv1.Machine, has bool) {
		GinkgoHelper()
		Eventually(ctx, func(g Gomega) {
			g.Expect(env.get(ctx, machine)).To(Succeed())
			g.Expect(lo.HasKey(machine.Annotations, hook)).To(Equal(has))
		}).Should(Succeed())
	}

	It("blocks the deletion of one with a Node until it is removed, and of no other", func(ctx SpecContext) {
		m := newModelled(ctx, "hook", map[string]string{hook: ""})
		m.step(ctx, "start with 2", func() { m.setReplicas(ctx, 2) })
		used, booting := machineNamed(m.before[0].Name), machineNamed(m.before[1].Name)
		m.step(ctx, "let a Node join", func() { m.join(ctx, used.Name) })

		By("removing it from a Machine that is not deleted: Cluster API adds it again")
		env.annotate(ctx, used, hook, nil)
		await(ctx, used, true)

		By("deleting both")
		release := env.hold(ctx, used) // so that it can be read until the end
		m.setReplicas(ctx, 0)
		env.waitGone(ctx, booting)
		Eventually(ctx, func(g Gomega) {
			g.Expect(env.get(ctx, used)).To(Succeed())
			g.Expect(conditions.GetReason(used, clusterv1.MachineDeletingCondition)).To(Equal(clusterv1.MachineDeletingWaitingForPreDrainHookReason))
		}).Should(Succeed())
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: used.Status.NodeRef.Name}}
		env.caughtUp(ctx, m.Name)
		Expect(env.simulated(ctx, used).DeletionTimestamp).To(BeNil())
		Expect(env.get(ctx, node)).To(Succeed())
		Expect(node.Spec.Unschedulable).To(BeFalse())

		By("removing it")
		env.annotate(ctx, used, hook, nil)
		env.waitGone(ctx, node)
		By("making the MachineSet reconcile its Machines again")
		m.setReplicas(ctx, 2) // one more than exist
		Eventually(ctx, func() int { return len(m.machines(ctx)) }).Should(Equal(2))
		env.caughtUp(ctx, m.Name)
		Expect(env.get(ctx, used)).To(Succeed())
		Expect(used.Annotations).NotTo(HaveKey(hook))
		release(ctx)
		env.waitGone(ctx, used)
	})
})
