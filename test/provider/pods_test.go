// SPDX-License-Identifier: Apache-2.0

//go:build provider

package provider

import (
	"context"

	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/test/harness/vsphere"
)

// newPod returns a Pod like those of the Deployment, which needs a Node of its own. A step can remove it with its Node. If it scaled
// the Deployment, it could not choose which Pod is removed. Consolidation does not replace the Node.
func (v *onVSphere) newPod(ctx context.Context, g *WithT, name string) *corev1.Pod {
	like := v.deployment(ctx, g).Spec.Template
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: corev1.NamespaceDefault, Name: name, Labels: like.Labels,
			Annotations: map[string]string{karpv1.DoNotDisruptAnnotationKey: "true"},
		},
		Spec: like.Spec,
	}
}

// removePods removes Pods of newPod, and their Nodes with everything that belongs to them.
func (v *onVSphere) removePods(ctx context.Context, g *WithT, pods ...*corev1.Pod) {
	before := len(v.claims(ctx, g))
	for _, pod := range pods {
		claim := v.claimOf(ctx, g, pod)
		g.Expect(v.Workload.Delete(ctx, pod)).To(Succeed())
		g.Expect(v.Workload.Delete(ctx, claim)).To(Succeed())
	}
	v.expectRunning(ctx, g, before-len(pods))
}

// claimOf returns the NodeClaim of the Node on which a Pod runs.
func (v *onVSphere) claimOf(ctx context.Context, g Gomega, pod *corev1.Pod) *karpv1.NodeClaim {
	g.Expect(v.Workload.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
	claim, found := lo.Find(v.claims(ctx, g), func(c karpv1.NodeClaim) bool { return c.Status.NodeName == pod.Spec.NodeName })
	g.Expect(found).To(BeTrue(), "a NodeClaim has the Node %q of Pod %s", pod.Spec.NodeName, pod.Name)
	return &claim
}

// machineOf returns the virtual machine on which a Pod runs.
func (v *onVSphere) machineOf(ctx context.Context, g Gomega, pod *corev1.Pod) vsphere.Machine {
	id := v.claimOf(ctx, g, pod).Status.ProviderID
	machine, found := lo.Find(v.machines(ctx, g), func(m vsphere.Machine) bool { return m.ProviderID() == id })
	g.Expect(found).To(BeTrue(), "a virtual machine has the provider ID %s", id)
	return machine
}
