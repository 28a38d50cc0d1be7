// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/audit"
	controlplanev1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/controlplane/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
)

const (
	// launchTimeout is launchTimeoutSeconds of the templates in standstill.yaml and drift.yaml.
	launchTimeout = 40 * time.Second
	// resumesWithin is how long after the end of a stall launches continue, on a busy machine. An exponential back-off
	// would take longer.
	resumesWithin = 2 * time.Minute
)

// If Cluster API does not try to create a Machine, that is no failure of an offering. While its controllers are down,
// the infrastructure provider is down, or a preflight check fails, for longer than launchTimeoutSeconds, no offering is marked
// and no claim fails. Afterwards launches continue, with exactly as many Machines as claims need.
func TestStandstill(t *testing.T) {
	t.Parallel()
	ctx, s := newStack(t, stack.Options{})
	g := NewWithT(t)
	run := &standstill{s: s, w: newObserver(ctx, t, s)}
	create(ctx, g, s, kinds.MachineDeployment, "standstill.yaml")
	run.pods = map[string]int{"used": 4, "unused": 0}
	run.expectSettled(ctx, g, 4)

	for _, halt := range inTurn(t, []struct {
		name       string
		begin, end func(*WithT)
		// The Pods that are added during the stall, and the number of Nodes whose claims are deleted.
		more    map[string]int
		deleted int
		// The text of the template's condition, and of the events of claims and Pods.
		reason, message string
	}{
		{
			name:  "Cluster API is stopped",
			begin: func(g *WithT) { g.Expect(s.StopComponent(ctx, stack.ClusterAPI)).To(Succeed()) },
			end:   func(g *WithT) { g.Expect(s.StartComponent(ctx, stack.ClusterAPI)).To(Succeed()) },
			// The Pods of the unused template need a MachineDeployment, which a webhook of Cluster API must admit.
			more: map[string]int{"used": 5, "unused": 3}, deleted: 2,
			reason: v1alpha1.ReasonNoProgress,
		},
		{
			name:  "the infrastructure provider is stopped",
			begin: func(g *WithT) { g.Expect(s.StopComponent(ctx, stack.Infrastructure)).To(Succeed()) },
			end:   func(g *WithT) { g.Expect(s.StartComponent(ctx, stack.Infrastructure)).To(Succeed()) },
			more:  map[string]int{"used": 3, "unused": 1}, deleted: 1,
			reason: v1alpha1.ReasonNoProgress, message: "SimulatedMachine",
		},
		{
			name:  "the control plane is being upgraded",
			begin: func(g *WithT) { setControlPlane(ctx, g, s, "v1.36.3", "v1.35.0") },
			end:   func(g *WithT) { setControlPlane(ctx, g, s, "v1.36.3", "") },
			more:  map[string]int{"used": 2, "unused": 1}, deleted: 2,
			reason: v1alpha1.ReasonBlocked, message: "ControlPlaneIsStable",
		},
	}) {
		if !t.Run(halt.name, func(t *testing.T) {
			g := NewWithT(t)
			before := run.w.machinesEver()
			halt.begin(g)
			run.deleteClaims(ctx, g, true, halt.deleted)
			needed := halt.deleted
			for app, count := range halt.more {
				run.pods[app] += count
				needed += count
				scalePods(ctx, g, s, app, run.pods[app])
			}
			// The operator acts on a timeout within a few seconds.
			run.expectWaiting(ctx, g, needed, launchTimeout+5*time.Second)
			run.expectReported(ctx, g, halt.reason, halt.message)
			// Karpenter does the same after 15 minutes: the next claim for the same Pod waits for the same Machine.
			run.deleteClaims(ctx, g, false, 1)
			run.expectWaiting(ctx, g, needed, 0)
			run.expectNoFailure(g)

			launched := run.w.launchedEver()
			halt.end(g)
			ended := time.Now()
			g.Eventually(run.w.launchedEver).WithTimeout(resumesWithin).WithPolling(poll).
				Should(BeNumerically(">", launched), "Machines that ever had a provider ID")
			t.Logf("the next machine has its provider ID after %.0fs", time.Since(ended).Seconds())
			run.expectSettled(ctx, g, before+needed)
			run.expectNoFailure(g)
		}) {
			return
		}
	}
}

// standstill is a stack with standstill.yaml.
type standstill struct {
	s *stack.Stack
	w *observer
	// pods is how many Pods each app has.
	pods map[string]int
}

// claims returns the NodeClaims that are not being deleted.
func (r *standstill) claims(ctx context.Context) ([]karpv1.NodeClaim, error) {
	list := &karpv1.NodeClaimList{}
	err := r.s.Workload.List(ctx, list)
	return lo.Filter(list.Items, func(claim karpv1.NodeClaim, _ int) bool { return claim.DeletionTimestamp.IsZero() }), err
}

// isRegistered reports whether a claim has its Node.
func isRegistered(claim karpv1.NodeClaim) bool {
	return claim.StatusConditions().IsTrue(karpv1.ConditionTypeRegistered)
}

// deleteClaims deletes the first claims that have their Nodes, or those that wait.
func (r *standstill) deleteClaims(ctx context.Context, g *WithT, registered bool, count int) {
	claims, err := r.claims(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	claims = lo.Filter(claims, func(claim karpv1.NodeClaim, _ int) bool {
		return isRegistered(claim) == registered && claim.Labels[karpv1.NodePoolLabelKey] == "used"
	})
	g.Expect(len(claims)).To(BeNumerically(">=", count))
	for i := range claims[:count] {
		g.Expect(r.s.Workload.Delete(ctx, &claims[i])).To(Succeed())
	}
}

// expectWaiting waits until the given number of claims wait, and have done so for some time, without a failure. Only
// the clock shows that a timeout has passed without an effect.
func (r *standstill) expectWaiting(ctx context.Context, g *WithT, count int, longerThan time.Duration) {
	g.Eventually(ctx, func(g Gomega) {
		if marks := r.w.everMarked(); len(marks) > 0 {
			StopTrying(fmt.Sprintf("offerings are marked as unavailable: %v", marks)).Now()
		}
		claims, err := r.claims(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		waiting := lo.Reject(claims, func(claim karpv1.NodeClaim, _ int) bool { return isRegistered(claim) })
		g.Expect(waiting).To(HaveLen(count), "claims that wait")
		for i := range waiting {
			g.Expect(waiting[i].StatusConditions().IsTrue(karpv1.ConditionTypeLaunched)).To(BeTrue(), "NodeClaim %s is launched", waiting[i].Name)
			since := waiting[i].StatusConditions().Get(karpv1.ConditionTypeLaunched).LastTransitionTime
			g.Expect(time.Since(since.Time)).To(BeNumerically(">", longerThan), "how long NodeClaim %s waits", waiting[i].Name)
		}
	}).WithTimeout(2 * time.Minute).WithPolling(poll).Should(Succeed())
}

// expectReported waits until the template, a claim and a Pod report the same as Cluster API.
func (r *standstill) expectReported(ctx context.Context, g *WithT, reason, message string) {
	g.Eventually(ctx, func(g Gomega) {
		template := &v1alpha1.KarpenterMachineTemplate{}
		g.Expect(r.s.Workload.Get(ctx, client.ObjectKey{Name: "used"}, template)).To(Succeed())
		condition := template.StatusConditions().Get(v1alpha1.ConditionMachinesProgressing)
		g.Expect(condition).NotTo(BeNil(), v1alpha1.ConditionMachinesProgressing)
		g.Expect(condition.IsFalse()).To(BeTrue(), v1alpha1.ConditionMachinesProgressing)
		g.Expect(condition.Reason).To(Equal(reason))
		g.Expect(condition.Message).To(ContainSubstring(message))
		g.Expect(template.StatusConditions().Root().IsTrue()).To(BeTrue(), "Ready")
		events := &corev1.EventList{}
		g.Expect(r.s.Workload.List(ctx, events, client.MatchingFields{"reason": reason})).To(Succeed())
		for _, kind := range []string{"NodeClaim", "Pod"} {
			g.Expect(events.Items).To(ContainElement(And(
				HaveField("InvolvedObject.Kind", kind), HaveField("Message", ContainSubstring(message)))), "events of %ss", kind)
		}
	}).WithTimeout(time.Minute).WithPolling(poll).Should(Succeed())
}

// expectNoFailure checks that no offering was ever marked, that no claim ever failed, and that the operator deleted none.
func (r *standstill) expectNoFailure(g *WithT) {
	g.Expect(r.w.everMarked()).To(BeEmpty(), "unavailable offerings")
	g.Expect(r.w.everFailed()).To(BeEmpty(), "claims that have failed")
	deleted := lo.Filter(audit.WritesBy("karpenter-capi", auditEntries(g, r.s)), func(entry audit.Entry, _ int) bool {
		return entry.What() == "delete nodeclaims"
	})
	g.Expect(deleted).To(BeEmpty(), "claims that the operator deleted")
}

// expectSettled waits until all Pods run, each on its own Node, and checks how many Machines were created for them.
func (r *standstill) expectSettled(ctx context.Context, g *WithT, machinesEver int) {
	pods := lo.Sum(lo.Values(r.pods))
	g.Eventually(ctx, func(g Gomega) {
		for app, count := range r.pods {
			running, err := runningPods(ctx, r.s, app)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(running).To(Equal(count), "Pods of %s that run", app)
		}
		found, err := whatExists(ctx, r.s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found.Settled(pods)).To(BeTrue(), "the existing objects: %s", found)
	}).WithTimeout(3 * time.Minute).WithPolling(poll).Should(Succeed())
	g.Expect(r.w.machinesEver()).To(Equal(machinesEver), "Machines that were ever created")
}

// scalePods sets how many Pods an app has.
func scalePods(ctx context.Context, g *WithT, s *stack.Stack, app string, count int) {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceDefault, Name: app}}
	g.Expect(s.Workload.Patch(ctx, deployment, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, count)))).To(Succeed())
}

// setControlPlane sets the version of the control plane, and the one that it runs, which is the same if it is empty.
func setControlPlane(ctx context.Context, g *WithT, s *stack.Stack, version, running string) {
	controlPlane := &controlplanev1.SimulatedControlPlane{}
	key := client.ObjectKey{Namespace: stack.ClusterNamespace, Name: stack.ClusterName}
	g.Expect(s.Management.Get(ctx, key, controlPlane)).To(Succeed())
	before := controlPlane.DeepCopy()
	controlPlane.Spec.Version, controlPlane.Spec.RunningVersion = version, running
	g.Expect(s.Management.Patch(ctx, controlPlane, client.MergeFrom(before))).To(Succeed())
	g.Eventually(ctx, func() (string, error) {
		err := s.Management.Get(ctx, key, controlPlane)
		return controlPlane.Status.Version, err
	}).WithTimeout(time.Minute).WithPolling(poll).Should(Equal(lo.CoalesceOrEmpty(running, version)), "the version that the control plane reports")
}
