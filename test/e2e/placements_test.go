// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/test/harness/census"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
)

// The complete path in each placement: Pods, claims, Machines, Nodes, running Pods, and the deletion of everything.
func TestPlacements(t *testing.T) {
	t.Parallel()
	for _, placement := range stack.Placements {
		t.Run(string(placement), func(t *testing.T) {
			t.Parallel()
			ctx, s := newStack(t, stack.Options{Placement: placement})
			if placement.Separate() {
				g := NewWithT(t)
				g.Expect(s.Workload.List(ctx, &clusterv1.MachineList{})).To(Satisfy(meta.IsNoMatchError), "the workload cluster knows no Machines")
				g.Expect(s.Management.List(ctx, &karpv1.NodeClaimList{})).To(Satisfy(meta.IsNoMatchError), "the management cluster knows no claims")
			}
			forEachKind(ctx, t, s, func(g *WithT, kind kinds.Kind) { upAndDown(ctx, g, s, kind) })
		})
	}
}

// upAndDown creates Pods, waits until they run, deletes them, and waits until nothing is left.
func upAndDown(ctx context.Context, g *WithT, s *stack.Stack, kind kinds.Kind) {
	create(ctx, g, s, kind, "general.yaml")
	create(ctx, g, s, kind, "general-pods.yaml")
	g.Eventually(ctx, func() (int, error) { return runningPods(ctx, s, "general") }).
		WithTimeout(2*time.Minute).WithPolling(poll).Should(Equal(generalPods), "Pods that run")
	g.Eventually(ctx, func(g Gomega) { expectSameProviderIDs(ctx, g, s) }).
		WithTimeout(time.Minute).WithPolling(poll).Should(Succeed())

	pods := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceDefault, Name: "general"}}
	g.Expect(s.Workload.Delete(ctx, pods, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	g.Eventually(ctx, func() (census.Census, error) { return whatIsLeft(ctx, s) }).
		WithTimeout(3*time.Minute).WithPolling(poll).Should(Equal(census.Census{}), "what is left")
}

// expectSameProviderIDs checks that each Node has a claim and a Machine.
func expectSameProviderIDs(ctx context.Context, g Gomega, s *stack.Stack) {
	claims, nodes, machines := &karpv1.NodeClaimList{}, &corev1.NodeList{}, &clusterv1.MachineList{}
	g.Expect(s.Workload.List(ctx, claims)).To(Succeed())
	g.Expect(s.Workload.List(ctx, nodes, stack.Workers)).To(Succeed())
	g.Expect(s.Management.List(ctx, machines)).To(Succeed())
	g.Expect(len(nodes.Items)).To(BeNumerically(">", 1), "the Pods need more than one Node")

	ofNodes, ofClaims, ofMachines := []string{}, []string{}, []string{}
	for i := range nodes.Items {
		ofNodes = append(ofNodes, nodes.Items[i].Spec.ProviderID)
	}
	for i := range claims.Items {
		ofClaims = append(ofClaims, claims.Items[i].Status.ProviderID)
	}
	for i := range machines.Items {
		ofMachines = append(ofMachines, machines.Items[i].Spec.ProviderID)
	}
	g.Expect(ofClaims).To(ConsistOf(ofNodes), "each Node has a claim")
	g.Expect(ofMachines).To(ConsistOf(ofNodes), "each Node has a Machine")
}

// generalPods is how many replicas general-pods.yaml has.
const generalPods = 12
