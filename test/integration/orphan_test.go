// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	"github.com/karpenter-capi/karpenter-capi/test/harness/history"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

// Cluster API's MachineSet controller deletes the infrastructure object of a Machine if it gets no answer when it creates the
// Machine.
var _ = Describe("A Machine whose infrastructure object was deleted before it was provisioned", func() {
	It("is replaced, and its offering stays available", func(ctx SpecContext) {
		f := machineDeployments.newFixture("unprovisioned").breaks(history.WrongDelete).delays(never, never, never).createReady(ctx)
		machines := f.watchMachines(ctx)
		first := f.launchOne(ctx)
		orphan := env.waitMachine(ctx, first)
		env.delete(ctx, &infrav1.SimulatedMachine{ObjectMeta: metav1.ObjectMeta{Namespace: orphan.Namespace, Name: orphan.Name}})
		Eventually(ctx, func(g Gomega) {
			g.Expect(env.get(ctx, orphan)).To(Succeed())
			g.Expect(conditions.GetReason(orphan, clusterv1.MachineInfrastructureReadyCondition)).To(Equal(clusterv1.MachineInfrastructureDoesNotExistReason))
		}).Should(Succeed())
		second := f.launchOne(ctx)
		Eventually(ctx, func() int32 { return f.resource(ctx).Replicas() }).Should(BeEquivalentTo(2))

		env.later(ctx, timings.NoProgress+time.Second, first, func(g Gomega) { g.Expect(env.exists(ctx, orphan)).To(BeFalse()) })
		Expect(env.waitMachine(ctx, first).Name).NotTo(Equal(env.waitMachine(ctx, second).Name))
		f.caughtUp(ctx)
		Expect(f.resource(ctx).Replicas()).To(BeEquivalentTo(2))
		Expect(machines.everCreated()).To(HaveLen(3), "one more than claims")
		Expect(machines.everDeleted()).To(ConsistOf(orphan.Name))
		Expect(f.failures(ctx, instanceType)).To(BeEmpty())
	})
})
