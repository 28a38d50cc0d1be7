// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"

	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
)

// expectGenerated checks the infrastructure template, or machine pool, that was generated for a Node: it must be the
// base with the patches for the Node's offering.
func expectGenerated(ctx context.Context, g Gomega, s *stack.Stack, node *corev1.Node) {
	made := generatedFor(ctx, g, s, node)
	g.Expect(made.Base()).To(Equal("workers"))
	g.Expect(made.Labels).To(HaveKeyWithValue(v1alpha1.TemplateLabel, "offerings"))

	spec, of := made.Spec, offeringOf(node)
	g.Expect(spec.InstanceType).To(Equal(of.InstanceType))
	g.Expect(spec.Zone).To(Equal(of.Zone))
	g.Expect(spec.Spot).To(Equal(of.CapacityType == karpv1.CapacityTypeSpot))
	g.Expect(spec.Region).To(Equal("east"))
	g.Expect(string(spec.Architecture)).To(Equal(node.Labels[corev1.LabelArchStable]))
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, gpu} {
		patched, reported := spec.Capacity[name], node.Status.Capacity[name]
		g.Expect(patched.Cmp(reported)).To(BeZero(), "%s: it has %s, the Node %s", name, patched.String(), reported.String())
	}
	g.Expect(spec.Delays.NodeJoin.Duration.Seconds()).To(BeNumerically("==", 1), "fields without a patch are those of the base")
	g.Expect(spec.Failure).To(BeNil())
}

// generatedFor returns the object that was generated for the scalable resource of a Node's claim.
func generatedFor(ctx context.Context, g Gomega, s *stack.Stack, node *corev1.Node) *kinds.Infrastructure {
	claims := &karpv1.NodeClaimList{}
	g.Expect(s.Workload.List(ctx, claims)).To(Succeed())
	claim, found := lo.Find(claims.Items, func(claim karpv1.NodeClaim) bool { return claim.Status.NodeName == node.Name })
	g.Expect(found).To(BeTrue(), "Node %s has a claim", node.Name)

	resources, err := kinds.Resources(ctx, s.Management)
	g.Expect(err).NotTo(HaveOccurred())
	resource, found := lo.Find(resources, func(r kinds.Resource) bool { return r.Name == claim.Annotations[v1alpha1.ScalableResourceAnnotation] })
	g.Expect(found).To(BeTrue(), "the resource of claim %s exists", claim.Name)

	infrastructures, err := kinds.Infrastructures(ctx, s.Management)
	g.Expect(err).NotTo(HaveOccurred())
	made, found := lo.Find(infrastructures, func(i kinds.Infrastructure) bool { return i.Name == resource.Infrastructure })
	g.Expect(found).To(BeTrue(), "the infrastructure of %s %s exists", resource.Kind, resource.Name)
	return &made
}

// expectOnly checks that all existing resources are of one kind, and that there are any.
func expectOnly(ctx context.Context, g *WithT, s *stack.Stack, kind kinds.Kind) {
	resources, err := kinds.Resources(ctx, s.Management)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(resources).NotTo(BeEmpty())
	for _, resource := range resources {
		g.Expect(resource.Kind).To(Equal(kind), resource.Name)
	}
}
