// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
)

// No claim waits for another's machine: Pods that need a fast machine run while a machine that was requested before
// does not even have a provider ID. A machine that never gets one is replaced after launchTimeoutSeconds.
func TestFastMachinesDoNotWaitForSlowOnes(t *testing.T) {
	t.Parallel()
	takesTurns(t)
	ctx, s := newStack(t, stack.Options{})
	forEachKind(ctx, t, s, func(g *WithT, kind kinds.Kind) {
		create(ctx, g, s, kind, "slow-and-fast.yaml")
		create(ctx, g, s, kind, "slow-pod.yaml")
		var slow clusterv1.Machine
		g.Eventually(ctx, func(g Gomega) {
			claims := &karpv1.NodeClaimList{}
			g.Expect(s.Workload.List(ctx, claims)).To(Succeed())
			g.Expect(claims.Items).To(HaveLen(1), "the slow Pod's claim")
			g.Expect(claims.Items[0].StatusConditions().IsTrue(karpv1.ConditionTypeLaunched)).To(BeTrue(), "it is launched")
			machines, err := machinesOf(ctx, s, "slow")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(machines).To(HaveLen(1), "the slow Machine")
			slow = machines[0]
		}).WithTimeout(time.Minute).WithPolling(poll).Should(Succeed())

		launched := time.Now()
		create(ctx, g, s, kind, "fast-pods.yaml")
		g.Eventually(ctx, func() (int, error) { return runningPods(ctx, s, "fast") }).
			WithTimeout(time.Minute).WithPolling(poll).Should(Equal(fastPods), "fast Pods that run")
		t.Logf("all %d fast Pods run %.0fs after they were created", fastPods, time.Since(launched).Seconds())

		// It is read after the Pods, so the slow machine had no provider ID when they ran.
		machines, err := machinesOf(ctx, s, "slow")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(machines).To(HaveLen(1))
		g.Expect(machines[0].UID).To(Equal(slow.UID), "it is the same Machine")
		g.Expect(machines[0].Spec.ProviderID).To(BeEmpty(), "the slow machine has no provider ID yet")

		expectNextOffering(ctx, g, s, kind)

		// The slow one is not lost.
		g.Eventually(ctx, func() (int, error) { return runningPods(ctx, s, "slow") }).
			WithTimeout(2*time.Minute).WithPolling(poll).Should(Equal(1), "slow Pods that run")
		machines, err = machinesOf(ctx, s, "slow")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(machines).To(HaveLen(1))
		g.Expect(machines[0].UID).To(Equal(slow.UID), "the slow Pod runs on the Machine that was created for it")
	})
}

// fastPods is how many replicas fast-pods.yaml has.
const fastPods = 10
