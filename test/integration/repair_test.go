// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	infrastructure "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/controller"
)

var _ = Describe("With the feature gate NodeRepair", func() {
	It("a Node that is not Ready for 30 minutes is deleted, and so is its Machine", func(ctx SpecContext) {
		f := machineDeployments.newFixture("repair")
		f.pool.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "100%"}}
		f.createReady(ctx)
		claims := f.launch(ctx, 2)
		for _, claim := range claims {
			env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		}
		sick, healthy := claims[0], claims[1]

		By("the kubelet of one reports a problem, and no other component reports for it")
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: sick.Status.NodeName}}
		env.annotate(ctx, node, infrastructure.KwokAnnotation, nil)
		unready := client.RawPatch(types.StrategicMergePatchType, []byte(`{"status":{"conditions":[{"type":"Ready","status":"False","reason":"KubeletNotReady","lastTransitionTime":"`+time.Now().UTC().Format(time.RFC3339)+`"}]}}`))
		Expect(env.client.Status().Patch(ctx, node, unready)).To(Succeed())

		env.later(ctx, 31*time.Minute, sick, func(g Gomega) {
			g.Expect(apierrors.IsNotFound(env.get(ctx, sick))).To(BeTrue(), "NodeClaim %s still exists", sick.Name)
			g.Expect(f.machines(ctx)).To(HaveLen(1))
		})
		Expect(env.get(ctx, healthy)).To(Succeed())
		Expect(healthy.DeletionTimestamp).To(BeNil())
	})
})
