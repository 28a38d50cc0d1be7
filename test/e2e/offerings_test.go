// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
)

// From one base and patches, each Pod gets the cheapest offering that meets its needs and the NodePool's; when that is
// out of capacity, the next cheapest one.
func TestEachPodGetsTheCheapestOffering(t *testing.T) {
	t.Parallel()
	ctx, s := newStack(t, stack.Options{})
	forEachKind(ctx, t, s, func(g *WithT, kind kinds.Kind) {
		create(ctx, g, s, kind, "offerings.yaml")

		first := createPods(ctx, g, s, "first")
		expectOn(ctx, g, s, first, func(n need) offering { return n.cheapest })
		expectNodes(ctx, g, s, len(first))

		runOut(ctx, g, s)
		second := createPods(ctx, g, s, "second")
		expectOn(ctx, g, s, second, func(n need) offering { return n.next })
		expectNodes(ctx, g, s, len(first)+len(second))

		expectUnavailable(ctx, g, s)
		expectOn(ctx, g, s, first, func(n need) offering { return n.cheapest })
	})
}

// expectUnavailable checks that the template reports the cheapest offerings, and only those, as unavailable.
func expectUnavailable(ctx context.Context, g *WithT, s *stack.Stack) {
	template := &v1alpha1.KarpenterMachineTemplate{}
	g.Expect(s.Workload.Get(ctx, client.ObjectKey{Name: "offerings"}, template)).To(Succeed())
	failed := map[string]string{}
	for _, o := range template.Status.UnavailableOfferings {
		failed[offering{o.InstanceType, o.Zone, o.CapacityType}.String()] = o.Reason + ": " + o.Message
	}
	g.Expect(failed).To(HaveLen(len(needs)), "what failed: %v", failed)
	for _, n := range needs {
		g.Expect(failed).To(HaveKeyWithValue(n.cheapest.String(), And(HavePrefix("InsufficientCapacity: "), ContainSubstring("we have no more of these"))))
	}
	g.Expect(template.StatusConditions().Root().IsTrue()).To(BeTrue(), "Ready")
}

// createPods creates a Pod of each kind.
func createPods(ctx context.Context, g *WithT, s *stack.Stack, name string) []*corev1.Pod {
	pods := make([]*corev1.Pod, 0, len(needs))
	for _, n := range needs {
		pod := n.pod(name)
		g.Expect(s.Workload.Create(ctx, pod)).To(Succeed())
		pods = append(pods, pod)
	}
	return pods
}

// expectOn waits until the Pods run, and checks that each has a Node of the wanted offering.
func expectOn(ctx context.Context, g *WithT, s *stack.Stack, pods []*corev1.Pod, wanted func(need) offering) {
	want := map[string]string{}
	for i, n := range needs {
		want[pods[i].Name] = wanted(n).String()
	}
	nodes := make([]*corev1.Node, len(pods))
	g.Eventually(ctx, func() (map[string]string, error) {
		found := map[string]string{}
		for i, pod := range pods {
			node, err := nodeOf(ctx, s, pod)
			if apierrors.IsNotFound(err) {
				// Kubernetes' taint-eviction controller deletes a Pod that is bound right after its Node has lost Karpenter's
				// taint, if it has not seen that yet. The owner of a Pod creates another one.
				pods[i] = needs[i].pod(strings.TrimSuffix(pod.Name, "-"+needs[i].name))
				return nil, s.Workload.Create(ctx, pods[i])
			}
			if err != nil {
				return nil, err
			}
			if nodes[i] = node; node != nil {
				found[pod.Name] = offeringOf(node).String()
			}
		}
		return found, nil
	}).WithTimeout(5*time.Minute).WithPolling(poll).Should(Equal(want), "offerings of the Nodes that Pods run on")

	for i, n := range needs {
		expectLabels(g, nodes[i], n.name == "gpu")
		g.Eventually(ctx, func(g Gomega) { expectGenerated(ctx, g, s, nodes[i]) }).WithTimeout(time.Minute).WithPolling(poll).Should(Succeed())
	}
}

// expectNodes checks that there is a Node for each Pod, and a claim for each Node: nothing disrupts them, so a surplus
// one would stay.
func expectNodes(ctx context.Context, g *WithT, s *stack.Stack, count int) {
	g.Eventually(ctx, func(g Gomega) {
		claims, nodes := &karpv1.NodeClaimList{}, &corev1.NodeList{}
		g.Expect(s.Workload.List(ctx, claims)).To(Succeed())
		g.Expect(s.Workload.List(ctx, nodes, stack.Workers)).To(Succeed())
		g.Expect(nodes.Items).To(HaveLen(count), "Nodes")
		g.Expect(claims.Items).To(HaveLen(count), "NodeClaims")
	}).WithTimeout(time.Minute).WithPolling(poll).Should(Succeed())
}

// expectLabels checks what a Node has because of its instance type.
func expectLabels(g *WithT, node *corev1.Node, withGPU bool) {
	cpus, size := "2", "1"
	if strings.HasSuffix(node.Labels[corev1.LabelInstanceTypeStable], "-large") {
		cpus, size = "4", "2"
	}
	g.Expect(node.Labels).To(And(
		HaveKeyWithValue(v1alpha1.InstanceCPULabel, cpus),
		HaveKeyWithValue("example.com/generation", "current"),
		HaveKeyWithValue(corev1.LabelTopologyRegion, "east"),
	), node.Name)
	if !withGPU {
		g.Expect(node.Labels).NotTo(HaveKey(v1alpha1.InstanceGPUCountLabel), node.Name)
		g.Expect(node.Status.Capacity).NotTo(HaveKey(gpu), node.Name)
		return
	}
	g.Expect(node.Labels).To(And(HaveKeyWithValue(v1alpha1.InstanceGPUCountLabel, size), HaveKeyWithValue(v1alpha1.InstanceGPUNameLabel, "t4")), node.Name)
	reported := node.Status.Allocatable[gpu]
	g.Expect(reported.String()).To(Equal(size), "GPUs of %s", node.Name)
}

// runOut lets every new machine of the cheapest offerings fail, with an additional patch. Running machines are of an
// older revision.
func runOut(ctx context.Context, g *WithT, s *stack.Stack) {
	template := &v1alpha1.KarpenterMachineTemplate{}
	g.Expect(s.Workload.Get(ctx, client.ObjectKey{Name: "offerings"}, template)).To(Succeed())
	stored := template.DeepCopy()
	var out []string
	for _, n := range needs {
		out = append(out, fmt.Sprintf("%q", n.cheapest))
	}
	template.Spec.Patches = append(template.Spec.Patches, v1alpha1.Patch{
		Target:    v1alpha1.PatchTargetInfrastructure,
		EnabledIf: `{{ has (list .instanceType .zone .capacityType | join "/") (list ` + strings.Join(out, " ") + `) }}`,
		JSONPatches: []v1alpha1.JSONPatch{{
			Op: "add", Path: "/spec/template/spec/failure",
			Value: &apiextensionsv1.JSON{Raw: []byte(`{"percent": 100, "reason": "InsufficientInstanceCapacity", "message": "we have no more of these"}`)},
		}},
	})
	g.Expect(s.Workload.Patch(ctx, template, client.MergeFrom(stored))).To(Succeed())
	g.Eventually(ctx, func(g Gomega) {
		g.Expect(s.Workload.Get(ctx, client.ObjectKeyFromObject(template), template)).To(Succeed())
		ready := template.StatusConditions().Root()
		g.Expect(ready.ObservedGeneration).To(Equal(template.Generation), "the operator has seen the change")
		g.Expect(ready.IsTrue()).To(BeTrue(), "Ready: %s", ready.Message)
		g.Expect(template.Status.InvalidOfferings).To(BeEmpty())
	}).WithTimeout(time.Minute).WithPolling(poll).Should(Succeed())
}
