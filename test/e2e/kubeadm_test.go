// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
)

// kubeadmPods is how many replicas kubeadm.yaml has, each with its own Node.
const kubeadmPods = 3

// Cluster API's kubeadm bootstrap provider creates the bootstrap data, and machines join as it says: Nodes have the taint
// that Karpenter expects, the labels of the base template, and exactly the resources that Karpenter planned with.
func TestKubeadm(t *testing.T) {
	t.Parallel()
	ctx, s := newStack(t, stack.Options{Kubeadm: true})
	create(ctx, NewWithT(t), s, kinds.MachineDeployment, "kubeadm-base.yaml")
	forEachKind(ctx, t, s, func(g *WithT, kind kinds.Kind) {
		create(ctx, g, s, kind, "kubeadm.yaml")
		g.Eventually(ctx, func(g Gomega) {
			g.Expect(runningPods(ctx, s, "kubeadm")).To(Equal(kubeadmPods))
			found, err := whatExists(ctx, s)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found.Settled(kubeadmPods)).To(BeTrue(), "the existing objects: %s", found)
		}).WithTimeout(2 * time.Minute).WithPolling(poll).Should(Succeed())
		expectPlannedNodes(ctx, g, s)
		expectBooted(ctx, g, s)
	})
	g := NewWithT(t)
	g.Eventually(ctx, func(g Gomega) {
		templates, configs := &bootstrapv1.KubeadmConfigTemplateList{}, &bootstrapv1.KubeadmConfigList{}
		g.Expect(s.Management.List(ctx, templates, client.HasLabels{v1alpha1.TemplateLabel})).To(Succeed())
		g.Expect(s.Management.List(ctx, configs)).To(Succeed())
		g.Expect(templates.Items).To(BeEmpty(), "generated templates")
		g.Expect(configs.Items).To(BeEmpty())
	}).WithTimeout(time.Minute).WithPolling(poll).Should(Succeed())
}

// expectPlannedNodes expects each Node to be what its claim was planned with.
func expectPlannedNodes(ctx context.Context, g *WithT, s *stack.Stack) {
	claims, nodes := &karpv1.NodeClaimList{}, &corev1.NodeList{}
	g.Expect(s.Workload.List(ctx, claims)).To(Succeed())
	g.Expect(s.Workload.List(ctx, nodes, stack.Workers)).To(Succeed())
	byName := lo.KeyBy(nodes.Items, func(node corev1.Node) string { return node.Name })
	for _, claim := range claims.Items {
		node := byName[claim.Status.NodeName]
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods, corev1.ResourceEphemeralStorage} {
			planned, has := claim.Status.Allocatable[name], node.Status.Allocatable[name]
			g.Expect(has.Cmp(planned)).To(BeZero(), "allocatable %s: planned %s, and Node %s has %s", name, planned.String(), node.Name, has.String())
		}
		g.Expect(node.Status.Allocatable.Pods().Value()).To(BeNumerically("==", 20), "spec.kubelet.maxPods replaces that of the base template")
		g.Expect(node.Labels).To(HaveKeyWithValue("node.kubernetes.io/pool", "workers"))
		g.Expect(node.Spec.Taints).To(ConsistOf(corev1.Taint{Key: "example.com/dedicated", Effect: corev1.TaintEffectNoSchedule}))
	}
	events := &corev1.EventList{}
	g.Expect(s.Workload.List(ctx, events)).To(Succeed())
	g.Expect(events.Items).NotTo(ContainElement(HaveField("Reason", "UnregisteredTaintMissing")), "Nodes joined with the taint karpenter.sh/unregistered")
}

// expectBooted expects that all machines found the API server with kubeadm's bootstrap data.
func expectBooted(ctx context.Context, g *WithT, s *stack.Stack) {
	machines, configs := &infrav1.SimulatedMachineList{}, &bootstrapv1.KubeadmConfigList{}
	g.Expect(s.Management.List(ctx, machines, client.InNamespace(stack.ClusterNamespace))).To(Succeed())
	g.Expect(machines.Items).To(HaveLen(kubeadmPods))
	for _, machine := range machines.Items {
		g.Expect(machine.Status.Conditions).To(ContainElement(And(HaveField("Type", infrav1.BootstrapSucceeded), HaveField("Status", BeEquivalentTo("True")))), machine.Name)
	}
	g.Expect(s.Management.List(ctx, configs, client.InNamespace(stack.ClusterNamespace))).To(Succeed())
	g.Expect(configs.Items).NotTo(BeEmpty())
}
