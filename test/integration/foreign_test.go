// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

var _ = forEachKind("A scalable resource that this operator did not generate", func(k kind) {
	It("keeps its Machines, even if a user makes a claim name it", func(ctx SpecContext) {
		f := k.newFixture("foreign").delays(0, 0, never).createReady(ctx)
		generated := f.generate(ctx)
		for _, object := range generated.Objects {
			Expect(env.client.Create(ctx, object)).To(Succeed())
		}
		resource := generated.Resource
		resource.SetName("somebodys" + k.suffix())
		resource.SetLabels(map[string]string{clusterv1.ClusterNameLabel: served.Name})
		resource.SetReplicas(1, time.Now())
		switch object := resource.API().(type) {
		case *clusterv1.MachineDeployment:
			object.Spec.Selector.MatchLabels[clusterv1.MachineDeploymentNameLabel] = object.Name
			object.Spec.Template.Labels = lo.Assign(object.Spec.Selector.MatchLabels)
		case *clusterv1.MachinePool:
			object.Spec.Template.Labels = map[string]string{"team": "another"}
		}
		Expect(env.client.Create(ctx, resource.API())).To(Succeed())
		DeferCleanup(func(ctx context.Context) { env.delete(ctx, resource.API()); env.waitGone(ctx, resource.API()) })
		machines := func() []clusterv1.Machine {
			list := &clusterv1.MachineList{}
			Expect(env.client.List(ctx, list, client.MatchingLabels{k.nameLabel(): resource.GetName()})).To(Succeed())
			return list.Items
		}
		Eventually(ctx, machines).Should(HaveLen(1))
		machine := machines()[0]

		claim := f.launchOne(ctx)
		env.waitFor(ctx, claim, karpv1.ConditionTypeLaunched)
		env.annotate(ctx, claim, v1alpha1.ScalableResourceAnnotation, new(resource.GetName()))
		f.caughtUp(ctx)
		Expect(machines()).To(HaveExactElements(HaveField("Labels", Not(HaveKey(v1alpha1.NodeClaimUIDLabel)))))
		env.delete(ctx, claim)
		env.waitGone(ctx, claim)
		f.caughtUp(ctx)
		Expect(machines()).To(HaveExactElements(And(
			HaveField("UID", machine.UID), HaveField("DeletionTimestamp", BeNil()))))
		Expect(env.get(ctx, resource.API())).To(Succeed())
		Expect(resource.Replicas()).To(BeEquivalentTo(1))
	})
})
