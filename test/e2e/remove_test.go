// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/census"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
)

// removeAll deletes the Pods, the NodePools, then the templates and last their catalogs, and checks that nothing is left.
func removeAll(ctx context.Context, g *WithT, s *stack.Stack) {
	inDefault := client.InNamespace(corev1.NamespaceDefault)
	g.Expect(errors.Join(
		s.Workload.DeleteAllOf(ctx, &appsv1.Deployment{}, inDefault, client.PropagationPolicy(metav1.DeletePropagationBackground)),
		s.Workload.DeleteAllOf(ctx, &corev1.Pod{}, inDefault),
		s.Workload.DeleteAllOf(ctx, &karpv1.NodePool{}),
	)).To(Succeed())
	g.Eventually(ctx, func() (census.Census, error) { return whatIsLeft(ctx, s) }).
		WithTimeout(3*time.Minute).WithPolling(poll).Should(Equal(census.Census{}), "what is left")

	g.Expect(s.Workload.DeleteAllOf(ctx, &v1alpha1.KarpenterMachineTemplate{})).To(Succeed())
	g.Eventually(ctx, func() (int, error) { return offersLeft(ctx, s) }).
		WithTimeout(2*time.Minute).WithPolling(poll).Should(BeZero(), "templates, NodePools and generated objects that are left")
	g.Expect(s.Workload.DeleteAllOf(ctx, &v1alpha1.InstanceTypeCatalog{})).To(Succeed())
}

// offersLeft counts the templates, NodePools and generated objects that still exist.
func offersLeft(ctx context.Context, s *stack.Stack) (int, error) {
	templates, pools := &v1alpha1.KarpenterMachineTemplateList{}, &karpv1.NodePoolList{}
	resources, err := kinds.Resources(ctx, s.Management)
	infrastructures, infrastructuresErr := kinds.Infrastructures(ctx, s.Management)
	err = errors.Join(err, infrastructuresErr, s.Workload.List(ctx, templates), s.Workload.List(ctx, pools))
	return len(templates.Items) + len(pools.Items) + len(resources) + len(infrastructures), err
}
