// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/infrastructure/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/stack/stack"
)

// expectGenerated checks the infrastructure template that was generated for a Node: it has what patches made of the
// base for the Node's offering.
func expectGenerated(ctx context.Context, g Gomega, s *stack.Stack, node *corev1.Node) {
	template := generatedFor(ctx, g, s, node)
	g.Expect(template.Annotations).To(HaveKeyWithValue(clusterv1.TemplateClonedFromNameAnnotation, "workers"))
	g.Expect(template.Labels).To(HaveKeyWithValue(v1alpha1.TemplateLabel, "offerings"))

	spec, of := template.Spec.Template.Spec, offeringOf(node)
	g.Expect(spec.InstanceType).To(Equal(of.InstanceType))
	g.Expect(spec.Zone).To(Equal(of.Zone))
	g.Expect(spec.Spot).To(Equal(of.CapacityType == karpv1.CapacityTypeSpot))
	g.Expect(spec.Region).To(Equal("east"))
	g.Expect(string(spec.Architecture)).To(Equal(node.Labels[corev1.LabelArchStable]))
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, gpu} {
		patched, reported := spec.Capacity[name], node.Status.Capacity[name]
		g.Expect(patched.Cmp(reported)).To(BeZero(), "%s: the template has %s, the Node %s", name, patched.String(), reported.String())
	}
	g.Expect(spec.Delays.NodeJoin.Duration.Seconds()).To(BeNumerically("==", 1), "what no patch changes is the base's")
	g.Expect(spec.Failure).To(BeNil())
}

// generatedFor returns the infrastructure template of the MachineDeployment that a Node's claim names.
func generatedFor(ctx context.Context, g Gomega, s *stack.Stack, node *corev1.Node) *infrav1.SimulatedMachineTemplate {
	claims := &karpv1.NodeClaimList{}
	g.Expect(s.Workload.List(ctx, claims)).To(Succeed())
	for i := range claims.Items {
		claim := &claims.Items[i]
		if claim.Status.NodeName != node.Name {
			continue
		}
		resource, template := &clusterv1.MachineDeployment{}, &infrav1.SimulatedMachineTemplate{}
		g.Expect(s.Management.Get(ctx, inDefault(claim.Annotations[v1alpha1.ScalableResourceAnnotation]), resource)).To(Succeed())
		g.Expect(s.Management.Get(ctx, inDefault(resource.Spec.Template.Spec.InfrastructureRef.Name), template)).To(Succeed())
		return template
	}
	g.Expect(claims.Items).To(BeEmpty(), "none of these claims is of Node %s", node.Name)
	g.Expect(node.Name).To(BeEmpty(), "the Node has no claim")
	return nil
}

func inDefault(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: corev1.NamespaceDefault, Name: name}
}

// generatedLeft counts what is still there of what the operator generates.
func generatedLeft(ctx context.Context, s *stack.Stack) (int, error) {
	resources, templates := &clusterv1.MachineDeploymentList{}, &infrav1.SimulatedMachineTemplateList{}
	of := client.HasLabels{v1alpha1.TemplateLabel}
	if err := s.Management.List(ctx, resources, of); err != nil {
		return 0, err
	}
	err := s.Management.List(ctx, templates, of)
	return len(resources.Items) + len(templates.Items), err
}
