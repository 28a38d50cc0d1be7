// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
)

// expectNextOffering checks that a Pod gets a Node of the next cheapest offering if the machine of the cheapest one has no
// provider ID after launchTimeoutSeconds, and that nothing is left of that machine.
func expectNextOffering(ctx context.Context, g *WithT, s *stack.Stack, kind kinds.Kind) {
	create(ctx, g, s, kind, "never-launched.yaml")
	g.Eventually(ctx, func() (int, error) { return runningPods(ctx, s, "never-launched") }).
		WithTimeout(3*time.Minute).WithPolling(poll).Should(Equal(1), "Pods that run on the next cheapest offering")
	template := &v1alpha1.KarpenterMachineTemplate{}
	g.Expect(s.Workload.Get(ctx, client.ObjectKey{Name: "never-launched"}, template)).To(Succeed())
	g.Expect(template.Status.UnavailableOfferings).To(HaveLen(1))
	failed := template.Status.UnavailableOfferings[0]
	g.Expect(failed.InstanceType).To(Equal("never-launched"))
	g.Expect(failed.Reason).To(Equal(string(planner.LaunchTimeout)))
	g.Expect(failed.Message).To(ContainSubstring("has had no provider ID for 20s"))
	machines, err := machinesOf(ctx, s, "launched")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(machines).To(HaveLen(1), "Machines of the next cheapest offering")
	g.Eventually(ctx, func() (int, error) {
		machines, err := machinesOf(ctx, s, "never-launched")
		return len(machines), err
	}).WithTimeout(time.Minute).WithPolling(poll).Should(BeZero(), "Machines that were never launched")
}
