// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
	"github.com/karpenter-capi/karpenter-capi/test/harness/workload"
)

// notice is how long before their end spot instances of AWS are announced to end.
const notice = 2 * time.Minute

// A termination handler announces the end of a spot instance. Before it ends, its Pod runs on another offering, and
// exactly one Machine has replaced the one of the instance.
func TestInterruption(t *testing.T) {
	t.Parallel()
	ctx, s := newStack(t, stack.Options{})
	forEachKind(ctx, t, s, func(g *WithT, kind kinds.Kind) {
		create(ctx, g, s, kind, "interruption.yaml")
		ends, stays := runTwo(ctx, g, s)

		taint := client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec":{"taints":[{"key":"aws-node-termination-handler/spot-itn","value":"event","effect":"NoSchedule"}]}}`))
		g.Expect(s.Workload.Patch(ctx, ends.DeepCopy(), taint)).To(Succeed())
		announced := time.Now()
		claim := claimOf(ctx, g, s, ends)
		g.Eventually(ctx, func() (bool, error) {
			err := s.Workload.Get(ctx, client.ObjectKeyFromObject(claim), claim)
			return apierrors.IsNotFound(err) || !claim.DeletionTimestamp.IsZero(), client.IgnoreNotFound(err)
		}).WithTimeout(notice/8).WithPolling(poll).Should(BeTrue(), "the NodeClaim is deleted at once")

		replacement := expectReplaced(ctx, g, s, ends, stays)
		g.Expect(replacement.Labels).To(HaveKeyWithValue(karpv1.CapacityTypeLabelKey, karpv1.CapacityTypeOnDemand))
		g.Expect(time.Since(announced)).To(BeNumerically("<", notice), "until the instance would have ended")

		template := &v1alpha1.KarpenterMachineTemplate{}
		g.Expect(s.Workload.Get(ctx, client.ObjectKey{Name: "interruption"}, template)).To(Succeed())
		g.Expect(template.Status.UnavailableOfferings).To(ConsistOf(And(
			HaveField("CapacityType", karpv1.CapacityTypeSpot), HaveField("Reason", v1alpha1.ReasonInterrupted), HaveField("Failures", BeEquivalentTo(1)),
		)))
	})
}

// Cluster API's own MachineHealthCheck remediates a Machine while Karpenter's feature gate NodeRepair is on: exactly one
// Machine replaces it, after a drain.
func TestHealthCheck(t *testing.T) {
	t.Parallel()
	takesTurns(t)
	ctx, s := newStack(t, stack.Options{OperatorArgs: []string{"--feature-gates=NodeRepair=true"}})
	g := NewWithT(t)
	w := newObserver(ctx, t, s)
	create(ctx, g, s, kinds.MachineDeployment, "interruption.yaml")
	check := &clusterv1.MachineHealthCheck{
		ObjectMeta: metav1.ObjectMeta{Namespace: stack.ClusterNamespace, Name: "deadlock"},
		Spec: clusterv1.MachineHealthCheckSpec{
			ClusterName: stack.ClusterName,
			Selector:    metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.TemplateLabel: "interruption"}},
			Checks: clusterv1.MachineHealthCheckChecks{UnhealthyNodeConditions: []clusterv1.UnhealthyNodeCondition{
				{Type: "KernelDeadlock", Status: corev1.ConditionTrue, TimeoutSeconds: new(int32(1))},
			}},
		},
	}
	g.Expect(s.Management.Create(ctx, check)).To(Succeed())
	sick, stays := runTwo(ctx, g, s)
	deadlock := client.RawPatch(types.StrategicMergePatchType, fmt.Appendf(nil,
		`{"status":{"conditions":[{"type":"KernelDeadlock","status":"True","reason":"DockerHung","lastTransitionTime":%q}]}}`, time.Now().UTC().Format(time.RFC3339)))
	g.Expect(s.Workload.Status().Patch(ctx, sick.DeepCopy(), deadlock)).To(Succeed())
	expectReplaced(ctx, g, s, sick, stays)
	// Two and the replacement. The third race of docs/design/deletion.md can cost a Machine that boots, which is replaced.
	g.Expect(w.machinesEver()).To(BeNumerically("~", 3.5, 0.5), "Machines that ever existed")
	g.Expect(w.everMarked()).To(BeEmpty(), "offerings that were ever unavailable")
	g.Expect(w.everFailed()).To(BeEmpty(), "NodeClaims that ever failed")
}

// runTwo runs two Pods, each on its own spot Node, and returns the Nodes.
func runTwo(ctx context.Context, g *WithT, s *stack.Stack) (first, second *corev1.Node) {
	const app = "steady"
	g.Expect(s.Workload.Create(ctx, workload.Deployment(app, nil, map[string]string{karpv1.NodePoolLabelKey: "interruption"}))).To(Succeed())
	g.Expect(workload.Scale(ctx, s.Workload, app, 2)).To(Succeed())
	nodes := waitForTwo(ctx, g, s)
	for _, node := range nodes {
		g.Expect(node.Labels).To(HaveKeyWithValue(karpv1.CapacityTypeLabelKey, karpv1.CapacityTypeSpot))
	}
	return nodes[0], nodes[1]
}

// waitForTwo waits until the two Pods run, and returns their Nodes.
func waitForTwo(ctx context.Context, g *WithT, s *stack.Stack) []*corev1.Node {
	var nodes []*corev1.Node
	g.Eventually(ctx, func(g Gomega) {
		pods := &corev1.PodList{}
		g.Expect(s.Workload.List(ctx, pods, client.InNamespace(corev1.NamespaceDefault), client.MatchingLabels{"app": "steady"})).To(Succeed())
		g.Expect(pods.Items).To(HaveLen(2))
		nodes = nil
		for i := range pods.Items {
			g.Expect(pods.Items[i].DeletionTimestamp).To(BeNil())
			node, err := nodeOf(ctx, s, &pods.Items[i])
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(node).NotTo(BeNil(), "Pod %s does not run", pods.Items[i].Name)
			nodes = append(nodes, node)
		}
	}).WithTimeout(notice).WithPolling(poll).Should(Succeed(), "two Pods run")
	return nodes
}

// expectReplaced waits until a Node, its NodeClaim and its Machine no longer exist and both Pods run. It returns the Node
// that has replaced it. The other Node and its Pod stay.
func expectReplaced(ctx context.Context, g *WithT, s *stack.Stack, gone, stays *corev1.Node) *corev1.Node {
	var replacement *corev1.Node
	g.Eventually(ctx, func(g Gomega) {
		nodes, claims, machines := &corev1.NodeList{}, &karpv1.NodeClaimList{}, &clusterv1.MachineList{}
		g.Expect(s.Workload.List(ctx, nodes, stack.Workers)).To(Succeed())
		g.Expect(s.Workload.List(ctx, claims)).To(Succeed())
		g.Expect(s.Management.List(ctx, machines, client.MatchingLabels{v1alpha1.TemplateLabel: "interruption"})).To(Succeed())
		g.Expect(nodes.Items).To(HaveLen(2), "Nodes")
		g.Expect(claims.Items).To(HaveLen(2), "NodeClaims")
		g.Expect(machines.Items).To(HaveLen(2), "Machines")
		g.Expect(nodes.Items).NotTo(ContainElement(HaveField("UID", gone.UID)))
		g.Expect(nodes.Items).To(ContainElement(HaveField("UID", stays.UID)))
	}).WithTimeout(notice).WithPolling(poll).Should(Succeed(), "Node %s is replaced", gone.Name)
	for _, node := range waitForTwo(ctx, g, s) {
		if node.UID != stays.UID {
			replacement = node
		}
	}
	g.Expect(replacement).NotTo(BeNil(), "the Pods run on two Nodes")
	return replacement
}

// claimOf returns the NodeClaim of a Node.
func claimOf(ctx context.Context, g *WithT, s *stack.Stack, node *corev1.Node) *karpv1.NodeClaim {
	claims := &karpv1.NodeClaimList{}
	g.Expect(s.Workload.List(ctx, claims)).To(Succeed())
	for i := range claims.Items {
		if claims.Items[i].Status.ProviderID == node.Spec.ProviderID {
			return &claims.Items[i]
		}
	}
	g.Expect(claims.Items).To(ContainElement(HaveField("Status.ProviderID", node.Spec.ProviderID)))
	return nil
}
