// SPDX-License-Identifier: Apache-2.0

//go:build provider

package provider

import (
	"context"
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/test/harness/guest"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// onCloud is a stack with an infrastructure provider and the sample for it.
type onCloud struct {
	*stack.Stack
	// provider is the API of the provider.
	provider schema.GroupVersion
}

// step is a part of a test, which needs those before it.
type step struct {
	name string
	run  func(context.Context, *WithT)
}

// runSteps runs steps until one fails.
func runSteps(ctx context.Context, t *testing.T, steps []step) {
	t.Helper()
	for _, s := range steps {
		if !t.Run(s.name, func(t *testing.T) { s.run(ctx, NewWithT(t)) }) {
			return
		}
	}
}

// runGuests runs what runs in the machines of a cloud until the test ends.
func runGuests(ctx context.Context, t *testing.T, s *stack.Stack, machines func(context.Context) ([]guest.Machine, error)) logr.Logger {
	t.Helper()
	g := NewWithT(t)
	cluster, authority := &clusterv1.Cluster{}, &corev1.Secret{}
	g.Expect(s.Management.Get(ctx, client.ObjectKey{Namespace: stack.ClusterNamespace, Name: stack.ClusterName}, cluster)).To(Succeed())
	g.Expect(s.Management.Get(ctx, client.ObjectKey{Namespace: stack.ClusterNamespace, Name: stack.ClusterName + "-ca"}, authority)).To(Succeed())
	guests := &guest.Guests{
		Machines: machines, Workload: s.Workload, Endpoint: cluster.Spec.ControlPlaneEndpoint.String(), Authority: authority.Data[corev1.TLSCertKey],
		Log: funcr.New(func(prefix, args string) { _, _ = fmt.Fprintln(t.Output(), prefix, args) }, funcr.Options{}),
	}
	runUntilEnd(ctx, t, guests.Run)
	return guests.Log
}

// runUntilEnd runs something until the test ends.
func runUntilEnd(ctx context.Context, t *testing.T, run func(context.Context)) {
	t.Helper()
	running, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run(running)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
}

// expectRunning expects a number of Pods, each on a Node whose claim, Machine and machine of the cloud belong together, and nothing
// else. What check expects depends on the cloud.
func expectRunning[M interface{ ProviderID() string }](
	ctx context.Context, g *WithT, c *onCloud, count int, list func(Gomega) []M, check func(Gomega, *karpv1.NodeClaim, *corev1.Node, M),
) {
	eventually(ctx, g, func(g Gomega) {
		machines := list(g)
		g.Expect(machines).To(HaveLen(count), "machines of the cloud")
		objects := &clusterv1.MachineList{}
		g.Expect(c.Management.List(ctx, objects)).To(Succeed())
		g.Expect(objects.Items).To(HaveLen(count), "Machines")
		expectServed(ctx, g, c, count, machines, check)
	})
}

// expectServed expects a number of Pods, each on a Node whose claim and machine of the cloud belong together.
func expectServed[M interface{ ProviderID() string }](
	ctx context.Context, g Gomega, c *onCloud, count int, machines []M, check func(Gomega, *karpv1.NodeClaim, *corev1.Node, M),
) {
	pods := &corev1.PodList{}
	g.Expect(c.Workload.List(ctx, pods, client.MatchingLabels{"app": "web"})).To(Succeed())
	running := lo.Filter(pods.Items, func(p corev1.Pod, _ int) bool {
		return p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp.IsZero()
	})
	g.Expect(running).To(HaveLen(count), "Pods that run, of %d", len(pods.Items))
	claims, byID := c.claims(ctx, g), lo.KeyBy(machines, M.ProviderID)
	g.Expect(claims).To(HaveLen(count), "NodeClaims")
	for i := range claims {
		machine, found := byID[claims[i].Status.ProviderID]
		g.Expect(found).To(BeTrue(), "NodeClaim %s has the provider ID %s of a machine", claims[i].Name, claims[i].Status.ProviderID)
		check(g, &claims[i], c.expectNode(ctx, g, &claims[i]), machine)
	}
}

// expectNode expects a claim to be initialized and to have a Node that fits, and returns the Node.
func (c *onCloud) expectNode(ctx context.Context, g Gomega, claim *karpv1.NodeClaim) *corev1.Node {
	g.Expect(claim.StatusConditions().IsTrue(karpv1.ConditionTypeInitialized)).To(BeTrue(), "NodeClaim %s is initialized", claim.Name)
	node := &corev1.Node{}
	g.Expect(c.Workload.Get(ctx, client.ObjectKey{Name: claim.Status.NodeName}, node)).To(Succeed())
	g.Expect(node.Spec.ProviderID).To(Equal(claim.Status.ProviderID))
	g.Expect(node.Spec.Taints).To(BeEmpty(), "Node %s", node.Name)
	for name, planned := range claim.Status.Allocatable {
		has := node.Status.Allocatable[name]
		g.Expect(has.Cmp(planned)).To(BeNumerically(">=", 0), "allocatable %s: planned %s, and Node %s has %s", name, planned.String(), node.Name, has.String())
	}
	return node
}

func (c *onCloud) claims(ctx context.Context, g Gomega) []karpv1.NodeClaim {
	claims := &karpv1.NodeClaimList{}
	g.Expect(c.Workload.List(ctx, claims)).To(Succeed())
	return claims.Items
}

// claimOf returns the NodeClaim of the Node on which a Pod runs.
func (c *onCloud) claimOf(ctx context.Context, g Gomega, pod *corev1.Pod) *karpv1.NodeClaim {
	g.Expect(c.Workload.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
	claim, found := lo.Find(c.claims(ctx, g), func(claim karpv1.NodeClaim) bool { return claim.Status.NodeName == pod.Spec.NodeName })
	g.Expect(found).To(BeTrue(), "a NodeClaim has the Node %q of Pod %s", pod.Spec.NodeName, pod.Name)
	return &claim
}

// list lists the provider's objects of a kind.
func (c *onCloud) list(ctx context.Context, g Gomega, kind string) []unstructured.Unstructured {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(c.provider.WithKind(kind + "List"))
	g.Expect(c.Management.List(ctx, list)).To(Succeed())
	return list.Items
}

// expectGone waits until no NodeClaim has the machine with a provider ID.
func (c *onCloud) expectGone(ctx context.Context, g *WithT, providerID string) {
	eventually(ctx, g, func(g Gomega) {
		g.Expect(lo.Map(c.claims(ctx, g), func(claim karpv1.NodeClaim, _ int) string { return claim.Status.ProviderID })).NotTo(ContainElement(providerID))
	})
}
