// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/test/harness/history"
)

// Cluster API deletes all Machines of a MachineDeployment or MachineSet that is being deleted, and creates none
// until they no longer exist. That takes as long as the drains, which a PodDisruptionBudget can forbid until the
// Pods run elsewhere.
var _ = Describe("A generated MachineDeployment", long, func() {
	DescribeTable("whose Machines a user deletes all at once is drained, and its successor does not wait for that", func(ctx SpecContext, name string, deleted func(context.Context, *fixture) client.Object) {
		const count = 10
		f := machineDeployments.newFixture(name).breaks(history.WrongDelete).createReady(ctx)
		machines := f.watchMachines(ctx)
		claims := f.launch(ctx, count)
		releases := make([]func(context.Context), count)
		for i, claim := range claims {
			env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
			_, releases[i] = env.runProtected(ctx, fmt.Sprintf("%s-%d", f.name, i), claim.Status.NodeName)
		}
		old, first := f.machines(ctx), f.resource(ctx)

		By("deleting what owns the Machines, and waiting until Karpenter drains all Nodes")
		owner := deleted(ctx, f)
		env.delete(ctx, owner)
		for _, claim := range claims {
			Eventually(ctx, func() bool { return env.exists(ctx, claim) && !claim.DeletionTimestamp.IsZero() }).Should(BeTrue())
		}

		By("launching their successors, and waiting for their Nodes while no Pod can be evicted")
		next := f.launch(ctx, count)
		for _, claim := range next {
			env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		}
		for _, machine := range old {
			Expect(env.exists(ctx, &machine)).To(BeTrue(), "Machine %s, whose Node is not drained", machine.Name)
		}

		By("allowing the eviction of the Pods, and waiting until no old Machine exists")
		for _, release := range releases {
			release(ctx)
		}
		// A Machine that waits for loweringTimeout exists for 3 minutes after its mark.
		Eventually(ctx, func(g Gomega) {
			for _, machine := range old {
				if !env.exists(ctx, &machine) {
					continue
				}
				if waits := time.Since(lifecycle.LeavingSince(&machine, time.Now())); lifecycle.IsMarked(&machine) && waits > 2*time.Minute {
					StopTrying(fmt.Sprintf("Machine %s is marked since %s", machine.Name, waits)).Now()
				}
				g.Expect(machine.Name).To(BeEmpty(), "a Machine that exists")
			}
		}).WithTimeout(5 * time.Minute).Should(Succeed())
		for _, claim := range claims {
			env.waitGone(ctx, claim)
		}

		By("waiting until the owner no longer exists, and nothing more is created")
		env.waitGone(ctx, owner)
		Eventually(ctx, func() int32 {
			replicas := int32(0)
			for _, resource := range f.resources(ctx) {
				if resource.GetUID() == first.GetUID() {
					replicas = resource.Replicas()
				}
			}
			return replicas
		}).Should(BeZero(), "replicas of the first MachineDeployment")
		f.caughtUp(ctx)
		Expect(machines.everCreated()).To(HaveLen(2 * count))
		Expect(machines.everDeleted()).To(ConsistOf(lo.Map(old, func(machine clusterv1.Machine, _ int) string { return machine.Name })))
	},
		Entry("with the MachineDeployment", "endingdeployment", func(ctx context.Context, f *fixture) client.Object { return f.resource(ctx).API() }),
		Entry("with its MachineSet", "endingset", func(ctx context.Context, f *fixture) client.Object { return &f.machineSets(ctx)[0] }),
	)
})
