// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/history"
)

// Only MachineDeployments have MachineSets. Cluster API's MachineDeployment controller
// scales down the oldest MachineSet first, whichever Machine is marked for deletion.
var _ = Describe("A generated MachineDeployment that a user changes", long, func() {
	DescribeTable("is suspended until the change is undone", func(ctx SpecContext, name, says string, edit, undo func(*clusterv1.MachineDeployment)) {
		f := machineDeployments.newFixture(name).breaks(history.WrongDelete).delays(0, 0, 0).createReady(ctx)
		machines := f.watchMachines(ctx)
		claims := f.launch(ctx, 3)
		for _, claim := range claims {
			env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		}
		kept, ended, lost := env.waitMachine(ctx, claims[0]), env.waitMachine(ctx, claims[1]), env.waitMachine(ctx, claims[2])
		deployment := f.resource(ctx).API().(*clusterv1.MachineDeployment)
		current := func() string {
			sets := lo.Filter(f.machineSets(ctx), func(set clusterv1.MachineSet, _ int) bool { return lo.FromPtr(set.Spec.Replicas) > 0 })
			Expect(sets).NotTo(BeEmpty())
			return sets[0].Name
		}
		older := current()

		By("changing it")
		env.change(ctx, deployment, func() { edit(deployment) })
		f.waitCondition(ctx, v1alpha1.ConditionOfferingsValid, v1alpha1.ReasonMachineDeploymentChanged, deployment.Name, says, "Undo the change")
		Eventually(ctx, func() []clusterv1.MachineSet { return f.machineSets(ctx) }).Should(HaveLen(2))
		By("launching another claim, deleting one, and deleting the Machine of one")
		refused := f.newClaim()
		Expect(env.client.Create(ctx, refused)).To(Succeed())
		env.waitGone(ctx, refused)
		env.delete(ctx, claims[1])
		env.delete(ctx, lost)
		env.waitGone(ctx, claims[2])
		Eventually(ctx, func() []clusterv1.Machine { return f.machines(ctx) }).Should(And(HaveLen(3), Not(ContainElement(HaveField("Name", lost.Name)))))
		replacement, found := lo.Find(f.machines(ctx), func(machine clusterv1.Machine) bool { return machine.Name != kept.Name && machine.Name != ended.Name })
		Expect(found).To(BeTrue())
		Expect(replacement.Labels[clusterv1.MachineSetNameLabel]).NotTo(Equal(older), "Cluster API replaces it in the newer MachineSet")
		f.caughtUp(ctx)
		Expect(f.resource(ctx).Replicas()).To(BeEquivalentTo(3))
		Expect(machines.everDeleted()).To(ConsistOf(lost.Name))
		Expect(env.get(ctx, claims[1])).To(Succeed(), "it waits")

		By("undoing the change, and deleting what was created meanwhile")
		env.change(ctx, deployment, func() { undo(deployment) })
		f.waitCondition(ctx, v1alpha1.ConditionOfferingsValid, v1alpha1.ReasonMachineDeploymentChanged, replacement.Labels[clusterv1.MachineSetNameLabel], "Delete these Machines")
		env.delete(ctx, &replacement)
		f.waitCondition(ctx, v1alpha1.ConditionOfferingsValid, "")
		env.waitGone(ctx, claims[1])
		next := f.launchOne(ctx)
		env.waitFor(ctx, next, karpv1.ConditionTypeInitialized)
		env.waitReplicas(ctx, f, 2)
		Eventually(ctx, func() []clusterv1.Machine { return f.machines(ctx) }).Should(HaveLen(2))
		created := env.waitMachine(ctx, next)
		Expect(created.Labels).To(HaveKeyWithValue(clusterv1.MachineSetNameLabel, older))
		Expect(env.waitMachine(ctx, claims[0]).UID).To(Equal(kept.UID))
		// The Machine that replaced the replacement is spare. If its Node joins before the claim comes, it is removed, too.
		Expect(machines.everDeleted()).To(And(ContainElements(lost.Name, replacement.Name, ended.Name),
			Not(ContainElement(kept.Name)), Not(ContainElement(created.Name))))
	},
		Entry("after its version was edited", "editedversion", `spec.template.spec.version is "v1.36.4" instead of`,
			func(deployment *clusterv1.MachineDeployment) { deployment.Spec.Template.Spec.Version = "v1.36.4" },
			func(deployment *clusterv1.MachineDeployment) { deployment.Spec.Template.Spec.Version = "" }),
		Entry("after a rollout was requested", "rolloutafter", "spec.rollout.after is set",
			func(deployment *clusterv1.MachineDeployment) {
				deployment.Spec.Rollout.After = metav1.NewTime(time.Now().Add(-time.Second).Truncate(time.Second))
			},
			func(deployment *clusterv1.MachineDeployment) { deployment.Spec.Rollout.After = metav1.Time{} }),
	)
})
