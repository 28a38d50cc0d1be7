// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/build"
	"github.com/karpenter-capi/karpenter-capi/test/harness/audit"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
)

const (
	// failoverPods is how many Pods need a Node when the leader is killed.
	failoverPods = 60
	// inFlight is how many of their launches must be in flight then.
	inFlight = 50
	// actsWithin is how long after the end of the leader the standby writes. It leads within 18.6 s (internal/operator:
	// leaseDuration).
	actsWithin = 20 * time.Second
)

// Two operators run, and the leader is killed while many launches are in flight. The standby goes on with them in time.
// No launch is doubled or lost.
func TestFailover(t *testing.T) {
	t.Parallel()
	takesTurns(t)
	ctx, s := newStack(t, stack.Options{WithoutOperator: true})
	g := NewWithT(t)
	run := &handover{s: s, w: newObserver(ctx, t, s), recorder: newRecorder(ctx, t, s)}
	leader := newReplica(ctx, t, s, "operator-1")
	lease := run.awaitLeader(ctx, g, "")
	newReplica(ctx, t, s, "operator-2")
	// No machine is launched before the leader is killed.
	createAs(ctx, g, s, kinds.MachineDeployment, "handover.yaml", "providerID: {duration: 1s", "providerID: {duration: 15s")
	scalePods(ctx, g, s, handoverApp, failoverPods)

	launches := 0
	g.Eventually(ctx, func(g Gomega) int {
		launches = run.launching(ctx, g)
		return launches
	}).WithTimeout(time.Minute).WithPolling(poll/10).Should(BeNumerically(">=", inFlight), "launches in flight")
	leader.signal(g, kill)
	killed := time.Now()
	run.awaitLeader(ctx, g, lease)
	leads := time.Since(killed)
	acts := run.firstWrite(ctx, g, killed.Add(leads)).Sub(killed)
	t.Logf("the leader is killed with %d launches in flight; the standby leads after %.1fs and writes after %.1fs", launches, leads.Seconds(), acts.Seconds())
	g.Expect(acts).To(BeNumerically("<", actsWithin))
	// As the kubelet would. On a busy machine, the second operator can lose the lease, too.
	newReplica(ctx, t, s, "operator-3")

	run.expectSettled(ctx, g, failoverPods)
	removeAll(ctx, g, s)
	run.expectNoViolation(ctx, g)
	t.Logf("of %d claims, %d Machines: doubled 0, lost 0", run.recorder.Claims(), run.w.machinesEver())
}

// launching returns how many claims have no instance yet.
func (r *handover) launching(ctx context.Context, g Gomega) int {
	claims := &karpv1.NodeClaimList{}
	g.Expect(r.s.Workload.List(ctx, claims)).To(Succeed())
	return lo.CountBy(claims.Items, func(claim karpv1.NodeClaim) bool {
		return claim.Status.ProviderID == "" && claim.DeletionTimestamp.IsZero()
	})
}

// firstWrite returns when an operator first wrote since a time, which is within about poll of it.
func (r *handover) firstWrite(ctx context.Context, g *WithT, since time.Time) (at time.Time) {
	g.Eventually(ctx, func(g Gomega) {
		writes := lo.Filter(audit.WritesBy(build.Name, auditEntries(g, r.s)), func(e audit.Entry, _ int) bool {
			return e.RequestReceivedTimestamp.After(since.Add(-2 * poll))
		})
		g.Expect(writes).NotTo(BeEmpty())
		at = lo.MinBy(writes, func(a, b audit.Entry) bool { return a.RequestReceivedTimestamp.Before(b.RequestReceivedTimestamp) }).RequestReceivedTimestamp
	}).WithTimeout(time.Minute).WithPolling(poll).Should(Succeed(), "a write of the standby")
	return at
}
