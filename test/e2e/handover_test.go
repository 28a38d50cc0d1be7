// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/test/harness/history"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
)

// takesOverWithin is how long after the end of a leader another one leads. The standby leads within 18.6 s
// (internal/operator: leaseDuration); the rest is for a machine under load.
const takesOverWithin = 30 * time.Second

// exitsWithin is how long after it resumes a leader exits that has lost its lease. It asks every 1.5 s, and leader election
// alone would let it act for 10 s.
const exitsWithin = 6 * time.Second

// Of two operators, one leads. When the leader freezes or is killed during launches and removals, the standby continues
// with them. A leader that resumes after it has lost the lease exits. No claim gets two Machines, no Machine of a live
// claim is deleted, and nothing is left at the end.
func TestLeaderHandover(t *testing.T) {
	t.Parallel()
	ctx, s := newStack(t, stack.Options{WithoutOperator: true})
	g := NewWithT(t)
	run := &handover{s: s, w: newObserver(ctx, t, s), recorder: newRecorder(ctx, t, s)}
	first := newReplica(ctx, t, s, "operator-1")
	lease := run.awaitLeader(ctx, g, "")
	second := newReplica(ctx, t, s, "operator-2")
	create(ctx, g, s, kinds.MachineDeployment, "handover.yaml")
	scalePods(ctx, g, s, handoverApp, 4)
	run.expectSettled(ctx, g, 4)

	run.disturb(ctx, g, 2, 10)
	first.signal(g, freeze)
	since := time.Now()
	lease = run.awaitLeader(ctx, g, lease)
	t.Logf("the standby leads %.0fs after the leader froze", time.Since(since).Seconds())
	// The new leader is still working on it.
	first.signal(g, wake)
	g.Eventually(ctx, first.ended).WithTimeout(exitsWithin).Should(Receive(HaveOccurred()), "the old leader ends with an error")
	run.expectSettled(ctx, g, 10)

	third := newReplica(ctx, t, s, "operator-3")
	run.disturb(ctx, g, 3, 12)
	second.signal(g, kill)
	since = time.Now()
	run.awaitLeader(ctx, g, lease)
	t.Logf("the standby leads %.0fs after the leader was killed", time.Since(since).Seconds())
	run.expectSettled(ctx, g, 12)

	removeAll(ctx, g, s)
	g.Expect(third.ended).NotTo(Receive(), "the leader runs")
	run.expectNoViolation(ctx, g)
}

// handoverApp is the Deployment in handover.yaml.
const handoverApp = "handover"

// handover is a stack with handover.yaml and several operators.
type handover struct {
	s        *stack.Stack
	w        *observer
	recorder *history.Recorder
}

// awaitLeader waits until an operator other than the last leader has the lease, and returns its identity.
func (r *handover) awaitLeader(ctx context.Context, g *WithT, last string) string {
	lease := &coordinationv1.Lease{}
	g.Eventually(ctx, func(g Gomega) {
		g.Expect(r.s.Workload.Get(ctx, types.NamespacedName{Namespace: corev1.NamespaceDefault, Name: "karpenter-leader-election"}, lease)).To(Succeed())
		g.Expect(lo.FromPtr(lease.Spec.HolderIdentity)).NotTo(BeElementOf("", last))
	}).WithTimeout(takesOverWithin).WithPolling(poll).Should(Succeed(), "the lease")
	return *lease.Spec.HolderIdentity
}

// disturb deletes the given number of claims, which have Nodes with Pods, and raises the number of Pods. It returns
// when some of the new Machines exist, and others do not exist yet.
func (r *handover) disturb(ctx context.Context, g *WithT, deleted, pods int) {
	claims := &karpv1.NodeClaimList{}
	g.Expect(r.s.Workload.List(ctx, claims)).To(Succeed())
	machines := r.w.machinesEver()
	scalePods(ctx, g, r.s, handoverApp, pods)
	for i := range claims.Items[:deleted] {
		g.Expect(r.s.Workload.Delete(ctx, &claims.Items[i])).To(Succeed())
	}
	g.Eventually(r.w.machinesEver).WithTimeout(time.Minute).WithPolling(poll/10).Should(BeNumerically(">", machines), "Machines that ever existed")
}

// expectSettled waits until all Pods run, each on its own Node, and nothing else exists.
func (r *handover) expectSettled(ctx context.Context, g *WithT, pods int) {
	g.Eventually(ctx, func(g Gomega) {
		running, err := runningPods(ctx, r.s, handoverApp)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(running).To(Equal(pods), "Pods that run")
		found, err := whatExists(ctx, r.s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found.Settled(pods)).To(BeTrue(), "the existing objects: %s", found)
	}).WithTimeout(5 * time.Minute).WithPolling(poll).Should(Succeed())
}

// expectNoViolation checks the complete history, when it has ended with no objects left.
func (r *handover) expectNoViolation(ctx context.Context, g *WithT) {
	g.Eventually(ctx, func() []types.UID {
		return append(r.recorder.UIDs(history.NodeClaim), r.recorder.UIDs(history.Machine)...)
	}).WithTimeout(time.Minute).WithPolling(poll).Should(BeEmpty(), "claims and Machines at the end of the history")
	violations, err := r.recorder.Violations()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(append(violations, r.recorder.End()...)).To(BeEmpty())
	// No Machine is kept for another claim, and none fails.
	g.Expect(r.recorder.Requested()).To(BeNumerically("<=", r.recorder.Claims()), "Machines that replicas asked for, one for each claim at most")
	g.Expect(r.w.everMarked()).To(BeEmpty(), "unavailable offerings")
}
