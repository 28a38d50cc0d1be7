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
)

// Only MachineDeployments have MachineSets. Cluster API's MachineDeployment controller
// scales down the oldest MachineSet first, whichever Machine is marked for deletion.
var _ = Describe("A generated MachineDeployment with two MachineSets", long, func() {
	DescribeTable("loses only the Machines of deleted claims", func(ctx SpecContext, name string, edit func(*clusterv1.MachineDeployment)) {
		f := machineDeployments.newFixture(name).createReady(ctx)
		machines := f.watchMachines(ctx)
		old := f.launch(ctx, 4)
		names := map[*karpv1.NodeClaim]string{}
		for _, claim := range old {
			env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
			names[claim] = env.waitMachine(ctx, claim).Name
		}
		deployment := f.resource(ctx).API().(*clusterv1.MachineDeployment)
		env.change(ctx, deployment, func() { edit(deployment) })
		Eventually(ctx, func() []clusterv1.MachineSet { return f.machineSets(ctx) }).Should(HaveLen(2))
		young := f.launch(ctx, 2)
		for _, claim := range young {
			env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
			names[claim] = env.waitMachine(ctx, claim).Name
		}
		Expect(setReplicas(f.machineSets(ctx))).To(ConsistOf(BeEquivalentTo(4), BeEquivalentTo(2)))

		// remains expects that the claims keep their Machines, and that no others exist.
		remains := func(claims ...*karpv1.NodeClaim) {
			GinkgoHelper()
			env.waitReplicas(ctx, f, len(claims))
			expected := lo.Map(claims, func(claim *karpv1.NodeClaim, _ int) string { return names[claim] })
			exactly := func() []string {
				return lo.Map(f.machines(ctx), func(machine clusterv1.Machine, _ int) string { return machine.Name })
			}
			Eventually(ctx, exactly).Should(ConsistOf(expected))
			Consistently(ctx, exactly, 3*still).Should(ConsistOf(expected))
			for _, claim := range claims {
				Expect(env.get(ctx, claim)).To(Succeed())
				Expect(claim.DeletionTimestamp).To(BeNil(), "NodeClaim %s", claim.Name)
			}
		}
		remove := func(claims ...*karpv1.NodeClaim) {
			GinkgoHelper()
			for _, claim := range claims {
				env.delete(ctx, claim)
			}
			for _, claim := range claims {
				env.waitGone(ctx, claim)
			}
		}

		By("deleting a claim whose Machine is in the newer MachineSet")
		remove(young[0])
		remains(append(old[:4:4], young[1])...)
		By("deleting one whose Machine is in the older MachineSet")
		remove(old[0])
		remains(old[1], old[2], old[3], young[1])
		By("deleting one of each while a new one is launched")
		next := f.newClaim()
		Expect(env.client.Create(ctx, next)).To(Succeed())
		remove(old[1], young[1])
		env.waitFor(ctx, next, karpv1.ConditionTypeInitialized)
		names[next] = env.waitMachine(ctx, next).Name
		remains(old[2], old[3], next)
		Expect(machines.everDeleted()).To(ConsistOf(names[young[0]], names[old[0]], names[old[1]], names[young[1]]))
		By("deleting all that the older one has")
		remove(old[2], old[3])
		remains(next)
	},
		Entry("after its version was edited", "editedversion", func(deployment *clusterv1.MachineDeployment) {
			deployment.Spec.Template.Spec.Version = "v1.36.4"
		}),
		Entry("after a rollout was requested", "rolloutafter", func(deployment *clusterv1.MachineDeployment) {
			deployment.Spec.Rollout.After = metav1.NewTime(time.Now().Add(-time.Second).Truncate(time.Second))
		}),
	)
})

// setReplicas returns the replicas of MachineSets.
func setReplicas(sets []clusterv1.MachineSet) []int32 {
	return lo.Map(sets, func(set clusterv1.MachineSet, _ int) int32 { return lo.FromPtr(set.Spec.Replicas) })
}
