// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	rbacv1 "k8s.io/api/rbac/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/build"
	"github.com/karpenter-capi/karpenter-capi/test/harness/audit"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
)

// renewalPods is how many Pods of handover.yaml wait for Nodes, each for its own.
const renewalPods = 10

// The kubeconfig of the workload cluster changes while launches are in flight, and the user before it loses its rights. The
// operator goes on as the new user, without a restart. No launch is doubled or lost.
func TestRenewedKubeconfig(t *testing.T) {
	t.Parallel()
	takesTurns(t)
	ctx, s := newStack(t, stack.Options{Placement: stack.InManagement})
	g := NewWithT(t)
	createAs(ctx, g, s, kinds.MachineDeployment, "handover.yaml", "providerID: {duration: 1s", "providerID: {duration: 15s")
	scalePods(ctx, g, s, handoverApp, renewalPods)
	inFlight := 0
	g.Eventually(ctx, func(g Gomega) int {
		inFlight = launching(ctx, g, s)
		return inFlight
	}).WithTimeout(time.Minute).WithPolling(poll/10).Should(Equal(renewalPods), "launches in flight")
	before := operatorProcess(ctx, g, s)

	const renewed = "operator-renewed"
	g.Expect(s.CreateOperatorAccount(ctx, renewed)).To(Succeed())
	from, _ := s.OperatorAccount(renewed)
	to, _ := s.OperatorAccount(stack.Operator)
	content, err := os.ReadFile(from)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(to+".new", content, 0o600)).To(Succeed())
	g.Expect(os.Rename(to+".new", to)).To(Succeed())
	changed := time.Now()
	log := audit.Log{Path: filepath.Join(s.LogDir(), "audit.log")}
	var first time.Time
	g.Eventually(ctx, func() (bool, error) {
		entries, _, err := log.Since(0)
		found, ok := lo.Find(entries, func(e audit.Entry) bool {
			return e.By(build.Name) && e.For("system:serviceaccount:"+stack.ClusterNamespace+":"+renewed)
		})
		first = found.StageTimestamp
		return ok, err
	}).WithTimeout(30*time.Second).WithPolling(poll).Should(BeTrue(), "a request with the new credentials")
	bindings := &rbacv1.ClusterRoleBindingList{}
	g.Expect(s.Workload.List(ctx, bindings)).To(Succeed())
	removed := 0
	for i := range bindings.Items {
		if subjects := bindings.Items[i].Subjects; len(subjects) == 1 && subjects[0].Kind == rbacv1.ServiceAccountKind && subjects[0].Name == stack.Operator {
			g.Expect(s.Workload.Delete(ctx, &bindings.Items[i])).To(Succeed())
			removed++
		}
	}
	g.Expect(removed).NotTo(BeZero(), "roles of the old user")

	g.Eventually(ctx, func() (int, error) { return runningPods(ctx, s, handoverApp) }).
		WithTimeout(2*time.Minute).WithPolling(poll).Should(Equal(renewalPods), "Pods that run")
	g.Expect(operatorProcess(ctx, g, s)).To(Equal(before), "the operator was not started again")
	claims := succeeded(g, log, "create nodeclaims")
	// Cluster API applies Machines, so their creation is a patch in the log.
	existing := &clusterv1.MachineList{}
	g.Expect(s.Management.List(ctx, existing)).To(Succeed())
	machines := len(existing.Items) + succeeded(g, audit.Log{Path: filepath.Join(s.LogDir(), stack.ManagementPrefix+"audit.log")}, "delete machines")
	t.Logf("renewed kubeconfig with %d launches in flight: the new credentials are used after %.1fs, restarts 0, claims %d, Machines %d, extra launches %d",
		inFlight, first.Sub(changed).Seconds(), claims, machines, machines-renewalPods)
	g.Expect([]int{claims, machines}).To(Equal([]int{renewalPods, renewalPods}), "claims and Machines that were ever created")
	removeAll(ctx, g, s)
}

// launching returns how many launches are in flight.
func launching(ctx context.Context, g Gomega, s *stack.Stack) int {
	claims := &karpv1.NodeClaimList{}
	g.Expect(s.Workload.List(ctx, claims)).To(Succeed())
	return lo.CountBy(claims.Items, func(claim karpv1.NodeClaim) bool { return claim.Status.NodeName == "" })
}

// succeeded returns how many requests in a log, such as delete machines, have succeeded.
func succeeded(g Gomega, log audit.Log, what string) int {
	entries, _, err := log.Since(0)
	g.Expect(err).NotTo(HaveOccurred())
	return lo.CountBy(entries, func(e audit.Entry) bool { return e.What() == what && e.Succeeded() })
}

// operatorProcess returns the id of the operator's process.
func operatorProcess(ctx context.Context, g Gomega, s *stack.Stack) int {
	for _, c := range s.Status(ctx) {
		if c.Name == stack.Operator {
			g.Expect(c.Ready).To(BeTrue(), c.State)
			return c.PID
		}
	}
	g.Expect(stack.Operator).To(BeEmpty(), "it has no process")
	return 0
}
