// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

var _ = Describe("A MachineDeployment that this operator did not generate", func() {
	It("keeps its Machines, also if a claim is made to name it", func(ctx SpecContext) {
		f := newFixture("foreign").delays(0, 0, never).createReady(ctx)
		resource := f.generate(ctx).Resource.API().(*clusterv1.MachineDeployment)
		resource.Name = "somebodys"
		resource.Labels = nil
		resource.Spec.Replicas = new(int32(1))
		resource.Spec.Selector.MatchLabels[clusterv1.MachineDeploymentNameLabel] = resource.Name
		resource.Spec.Template.Labels = lo.Assign(resource.Spec.Selector.MatchLabels)
		Expect(env.client.Create(ctx, resource)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { env.delete(ctx, resource); env.waitGone(ctx, resource) })
		machines := func() []clusterv1.Machine {
			list := &clusterv1.MachineList{}
			Expect(env.client.List(ctx, list, client.MatchingLabels{clusterv1.MachineDeploymentNameLabel: resource.Name})).To(Succeed())
			return list.Items
		}
		Eventually(ctx, machines).Should(HaveLen(1))
		machine := machines()[0]

		claim := f.launchOne(ctx)
		env.waitFor(ctx, claim, karpv1.ConditionTypeLaunched)
		env.annotate(ctx, claim, v1alpha1.ScalableResourceAnnotation, &resource.Name)
		Consistently(ctx, machines).Should(HaveExactElements(HaveField("Labels", Not(HaveKey(v1alpha1.NodeClaimUIDLabel)))))
		env.delete(ctx, claim)
		env.waitGone(ctx, claim)
		Consistently(ctx, machines).Should(HaveExactElements(And(
			HaveField("UID", machine.UID), HaveField("DeletionTimestamp", BeNil()))))
		Expect(env.get(ctx, resource)).To(Succeed())
		Expect(lo.FromPtr(resource.Spec.Replicas)).To(BeEquivalentTo(1))
	})
})
