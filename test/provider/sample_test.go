// SPDX-License-Identifier: Apache-2.0

//go:build provider

package provider

import (
	"context"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// becomeReady returns a step that expects the template to be ready with a number of offerings, which includes that the provider's
// webhooks accept what is generated.
func (c *onCloud) becomeReady(offerings int) func(context.Context, *WithT) {
	return func(ctx context.Context, g *WithT) {
		c.expectReady(ctx, g)
		eventually(ctx, g, func(g Gomega) {
			template := c.template(ctx, g)
			g.Expect(template.Status.Offerings).To(BeEquivalentTo(offerings))
			g.Expect(template.Status.InvalidOfferings).To(BeEmpty())
		})
	}
}

// expectReady waits until the operator has considered the present template and it is ready, and returns it.
func (c *onCloud) expectReady(ctx context.Context, g *WithT) *v1alpha1.KarpenterMachineTemplate {
	var template *v1alpha1.KarpenterMachineTemplate
	eventually(ctx, g, func(g Gomega) {
		template = c.template(ctx, g)
		ready := template.StatusConditions().Root()
		g.Expect(ready.ObservedGeneration).To(Equal(template.Generation))
		g.Expect(ready.IsTrue()).To(BeTrue(), "the conditions: %+v", template.Status.Conditions)
	})
	return template
}

func (c *onCloud) template(ctx context.Context, g Gomega) *v1alpha1.KarpenterMachineTemplate {
	template := &v1alpha1.KarpenterMachineTemplate{}
	g.Expect(c.Workload.Get(ctx, client.ObjectKey{Name: "general"}, template)).To(Succeed())
	return template
}

func (c *onCloud) scale(ctx context.Context, g *WithT, replicas int32) {
	deployment := c.deployment(ctx, g)
	deployment.Spec.Replicas = &replicas
	g.Expect(c.Workload.Update(ctx, deployment)).To(Succeed())
}

func (c *onCloud) deployment(ctx context.Context, g Gomega) *appsv1.Deployment {
	deployment := &appsv1.Deployment{}
	g.Expect(c.Workload.Get(ctx, client.ObjectKey{Namespace: "default", Name: "web"}, deployment)).To(Succeed())
	return deployment
}

// edit changes the spec of the template.
func (c *onCloud) edit(ctx context.Context, g *WithT, change func(*v1alpha1.KarpenterMachineTemplateSpec)) {
	template := c.template(ctx, g)
	before := template.DeepCopy()
	change(&template.Spec)
	g.Expect(c.Workload.Patch(ctx, template, client.MergeFrom(before))).To(Succeed())
}

// editDisruption changes how Karpenter disrupts Nodes of the NodePool general.
func (c *onCloud) editDisruption(ctx context.Context, g *WithT, change func(*karpv1.Disruption)) {
	pool := &karpv1.NodePool{}
	g.Expect(c.Workload.Get(ctx, client.ObjectKey{Name: "general"}, pool)).To(Succeed())
	before := pool.DeepCopy()
	change(&pool.Spec.Disruption)
	g.Expect(c.Workload.Patch(ctx, pool, client.MergeFrom(before))).To(Succeed())
}

// newPod returns a Pod like those of the Deployment, which needs a Node of its own. A step can remove it with its Node. If it scaled
// the Deployment, it could not choose which Pod is removed. Consolidation does not replace the Node.
func (c *onCloud) newPod(ctx context.Context, g *WithT, name string) *corev1.Pod {
	like := c.deployment(ctx, g).Spec.Template
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: corev1.NamespaceDefault, Name: name, Labels: like.Labels,
			Annotations: map[string]string{karpv1.DoNotDisruptAnnotationKey: "true"},
		},
		Spec: like.Spec,
	}
}

// createPods creates Pods that need a Node each.
func (c *onCloud) createPods(ctx context.Context, g *WithT) {
	for _, object := range objectsIn(g, "pods.yaml") {
		g.Expect(c.Workload.Create(ctx, object)).To(Succeed())
	}
}

// deletePods deletes them, so that Karpenter removes their Nodes.
func (c *onCloud) deletePods(ctx context.Context, g *WithT) {
	c.editDisruption(ctx, g, func(disruption *karpv1.Disruption) {
		disruption.ConsolidateAfter = karpv1.MustParseNillableDuration("0s")
		disruption.Budgets = []karpv1.Budget{{Nodes: "100%"}}
	})
	g.Expect(c.Workload.Delete(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}})).To(Succeed())
}

// deleteSample deletes the template and its NodePools, and expects nothing of what was generated to be left.
func (c *onCloud) deleteSample(ctx context.Context, g *WithT) {
	for _, object := range []client.Object{
		&karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "general"}}, &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}},
		&v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "general"}},
	} {
		g.Expect(c.Workload.Delete(ctx, object)).To(Succeed())
	}
	eventually(ctx, g, func(g Gomega) {
		deployments, pools := &clusterv1.MachineDeploymentList{}, &clusterv1.MachinePoolList{}
		g.Expect(c.Management.List(ctx, deployments)).To(Succeed())
		g.Expect(c.Management.List(ctx, pools)).To(Succeed())
		g.Expect(deployments.Items).To(BeEmpty(), "MachineDeployments")
		g.Expect(pools.Items).To(BeEmpty(), "MachinePools")
	})
}
