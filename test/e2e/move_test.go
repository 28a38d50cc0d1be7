// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/census"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
)

const (
	// movedPods is how many Pods of each kind of scalable resource run, each on its own Node.
	movedPods = 10

	// nothingFor is how long nothing may happen after a move. Karpenter looks for claims without a Machine at its start
	// and every two minutes.
	nothingFor = 2 * time.Minute
)

// clusterctl moves a Cluster with 20 Nodes to another management cluster; Karpenter is in the workload cluster.
// The operator is stopped before the move and started with the other kubeconfig, as the guide describes: everything
// survives, nothing happens for two minutes, and new Pods get their Nodes. Then clusterctl moves the Cluster back while the
// operator runs, which loses nothing either, although a NodeClaim is deleted meanwhile.
func TestMove(t *testing.T) {
	t.Parallel()
	takesTurns(t)
	ctx, source := newStack(t, stack.Options{Placement: stack.InWorkload, WithoutOperator: true})
	_, target := newStack(t, stack.Options{Manages: source})
	g := NewWithT(t)
	bootstrap := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: stack.ClusterNamespace, Name: stack.BootstrapSecretName}}
	move := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"`+clusterctlv1.ClusterctlMoveLabel+`":""}}}`))
	g.Expect(source.Management.Patch(ctx, bootstrap, move)).To(Succeed())

	operator := newReplica(ctx, t, source, "operator-source")
	for _, kind := range kinds.All {
		createAs(ctx, g, source, kind, "moving.yaml", "moving", movingApp(kind))
		scalePods(ctx, g, source, movingApp(kind), movedPods)
	}
	pods := movedPods * len(kinds.All)
	expectOwnNodes(ctx, g, source, pods)
	before := survivorsOf(ctx, g, source)
	t.Logf("before the move: %s", before)

	t.Log("moving with the operator stopped")
	operator.stop(ctx, g)
	moveCluster(ctx, t, source, target)
	expectNothingLeft(ctx, g, source)
	seen := newChanges(ctx, t, target)
	operator = newReplica(ctx, t, target, "operator-target")
	expectReady(ctx, g, target)
	g.Consistently(ctx, seen.all).WithTimeout(nothingFor).WithPolling(poll).Should(BeEmpty(), "what was created, deleted, scaled or drifted")
	after := survivorsOf(ctx, g, target)
	g.Expect(after).To(Equal(before), "what survives")
	t.Logf("after the move, and %s: %s; created, deleted, scaled or drifted: nothing", nothingFor, after)

	for _, kind := range kinds.All {
		scalePods(ctx, g, target, movingApp(kind), movedPods+1)
	}
	pods += len(kinds.All)
	since := time.Now()
	expectOwnNodes(ctx, g, target, pods)
	t.Logf("%d new Pods have their Nodes after %.0fs", len(kinds.All), time.Since(since).Seconds())

	t.Log("moving back with the operator running")
	before, seen = survivorsOf(ctx, g, target), newChanges(ctx, t, source)
	moveCluster(ctx, t, target, source)
	expectNothingLeft(ctx, g, target)
	claim := deleteOneClaim(ctx, g, source)
	// The operator that runs has no Cluster. The deleted claim waits for its Machine, and everything else stays.
	g.Consistently(ctx, func(g Gomega) {
		g.Expect(survivorsOf(ctx, g, source)).To(Equal(before))
	}).WithTimeout(nothingFor/4).WithPolling(poll).Should(Succeed(), "what exists while the operator has no Cluster")
	g.Expect(seen.all()).To(ConsistOf("is deleted: NodeClaim "+claim.Name, "is deleted: Node "+claim.Status.NodeName), "what happens")
	operator.stop(ctx, g)
	newReplica(ctx, t, source, "operator-source-again")
	expectOwnNodes(ctx, g, source, pods)
	err := source.Workload.Get(ctx, client.ObjectKeyFromObject(claim), claim)
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "the deleted claim has ended: %v", err)
	t.Logf("after the move back, and the replacement of one Node: %s", survivorsOf(ctx, g, source))
	removeAll(ctx, g, source)
}

// deleteOneClaim deletes a claim and returns it.
func deleteOneClaim(ctx context.Context, g *WithT, s *stack.Stack) *karpv1.NodeClaim {
	claims := &karpv1.NodeClaimList{}
	g.Expect(s.Workload.List(ctx, claims)).To(Succeed())
	g.Expect(claims.Items).NotTo(BeEmpty())
	g.Expect(s.Workload.Delete(ctx, &claims.Items[0])).To(Succeed())
	return &claims.Items[0]
}

func movingApp(kind kinds.Kind) string { return "moving-" + strings.ToLower(string(kind)) }

// moveCluster moves everything of the stack's namespace with the real clusterctl. It waits for what clusterctl requires:
// all Machines have their Nodes. Neither stack has an inventory of clusterctl, so clusterctl compares no versions.
func moveCluster(ctx context.Context, t *testing.T, from, to *stack.Stack) {
	t.Helper()
	g := NewWithT(t)
	clusterctl, err := filepath.Abs(filepath.Join("..", "..", "bin", "clusterctl"))
	g.Expect(err).NotTo(HaveOccurred())
	command := exec.CommandContext(ctx, clusterctl, "move", "--namespace", stack.ClusterNamespace,
		"--kubeconfig", from.ManagementKubeconfig(), "--to-kubeconfig", to.ManagementKubeconfig())
	// It looks for newer versions of itself otherwise.
	command.Env = append(os.Environ(), "XDG_CONFIG_HOME="+t.TempDir(), "CLUSTERCTL_DISABLE_VERSIONCHECK=true", "GOPROXY=off")
	since := time.Now()
	said, err := command.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), "%s", said)
	t.Logf("clusterctl move took %.0fs:\n%s", time.Since(since).Seconds(), said)
}

// expectOwnNodes waits until the given number of Pods run, each on its own Node, and nothing else exists.
func expectOwnNodes(ctx context.Context, g *WithT, s *stack.Stack, pods int) {
	g.Eventually(ctx, func(g Gomega) {
		found, err := whatExists(ctx, s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found.Settled(pods)).To(BeTrue(), "the existing objects: %s", found)
		machines := &clusterv1.MachineList{}
		g.Expect(s.Management.List(ctx, machines)).To(Succeed())
		g.Expect(machines.Items).To(HaveEach(HaveField("Status.NodeRef.Name", Not(BeEmpty()))), "Machines with their Nodes")
	}).WithTimeout(3 * time.Minute).WithPolling(poll).Should(Succeed())
}

// expectReady waits until machines can be launched with all templates.
func expectReady(ctx context.Context, g *WithT, s *stack.Stack) {
	g.Eventually(ctx, func(g Gomega) {
		templates := &v1alpha1.KarpenterMachineTemplateList{}
		g.Expect(s.Workload.List(ctx, templates)).To(Succeed())
		for i := range templates.Items {
			ready := templates.Items[i].StatusConditions().Root()
			g.Expect(ready.IsTrue()).To(BeTrue(), "%s is not Ready: %s", templates.Items[i].Name, ready.Message)
		}
	}).WithTimeout(time.Minute).WithPolling(poll).Should(Succeed())
}

// expectNothingLeft checks that clusterctl has moved everything.
func expectNothingLeft(ctx context.Context, g *WithT, s *stack.Stack) {
	left, err := census.Of(ctx, s.Workload, s.Management)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect([]int{left.Resources, left.Machines, left.Instances}).To(HaveEach(0), "MachineDeployments and MachinePools, Machines and instances that are left")
	infrastructure, err := kinds.Infrastructures(ctx, s.Management)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(infrastructure).To(BeEmpty(), "generated objects that are left")
	clusters := &clusterv1.ClusterList{}
	g.Expect(s.Management.List(ctx, clusters)).To(Succeed())
	g.Expect(clusters.Items).To(BeEmpty())
}

// stop ends the operator gracefully, so that the next one leads at once.
func (r *replica) stop(ctx context.Context, g *WithT) {
	r.signal(g, syscall.SIGTERM)
	g.Eventually(ctx, r.ended).WithTimeout(takesOverWithin).Should(Receive(BeNil()), "the operator ends")
}
