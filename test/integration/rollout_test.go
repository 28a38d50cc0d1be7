// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	infrastructure "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/controller"
)

// The NodePool's budget is 0, so Karpenter replaces no Node, and the spec decides when NodeClaims end.
var _ = Describe("A template with a rollout", func() {
	It("lets the canary drift first, then the others, stops when a new Node fails, and is undone", func(ctx SpecContext) {
		f := machineDeployments.newFixture("rollout")
		f.template.Spec.Rollout = &v1alpha1.Rollout{SoakSeconds: new(int32(1))}
		f.createReady(ctx)
		claims := f.launch(ctx, 3)
		for _, claim := range claims {
			env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		}
		step := func(want v1alpha1.RolloutStep) {
			GinkgoHelper()
			Eventually(ctx, func(g Gomega) {
				g.Expect(env.get(ctx, f.template)).To(Succeed())
				g.Expect(f.template.Status.Rollout).NotTo(BeNil())
				g.Expect(f.template.Status.Rollout.Step).To(Equal(want), "%+v", f.template.Status.Rollout)
			}).Should(Succeed())
		}
		// drifted waits until these claims are drifted and no others.
		drifted := func(want ...string) {
			GinkgoHelper()
			Eventually(ctx, func(g Gomega) {
				var got []string
				for _, claim := range f.all(ctx) {
					if claim.StatusConditions().Get(karpv1.ConditionTypeDrifted).IsTrue() {
						got = append(got, claim.Name)
					}
				}
				g.Expect(got).To(ConsistOf(want))
			}).Should(Succeed())
		}
		edit := func(change func(*v1alpha1.KarpenterMachineTemplateSpec)) {
			GinkgoHelper()
			env.change(ctx, f.template, func() { change(&f.template.Spec) })
		}
		maxPods := func(count *int32) {
			GinkgoHelper()
			edit(func(spec *v1alpha1.KarpenterMachineTemplateSpec) {
				spec.Kubelet = nil
				if count != nil {
					spec.Kubelet = &v1alpha1.KubeletConfiguration{MaxPods: count}
				}
			})
		}
		step(v1alpha1.RolloutComplete)

		By("changing the template")
		maxPods(new(int32(50)))
		step(v1alpha1.RolloutCanary)
		Expect(f.template.Status.Rollout.Canary).To(HaveLen(1))
		first := f.template.Status.Rollout.Canary[0].Name
		drifted(first)

		By("replacing the canary")
		fresh := f.launchOne(ctx)
		env.waitFor(ctx, fresh, karpv1.ConditionTypeInitialized)
		env.delete(ctx, &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: first}})
		step(v1alpha1.RolloutRolling)
		others := lo.Without(lo.Map(claims, func(claim *karpv1.NodeClaim, _ int) string { return claim.Name }), first)
		drifted(others...)

		By("letting the new Node fail")
		Expect(env.get(ctx, fresh)).To(Succeed())
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fresh.Status.NodeName}}
		env.annotate(ctx, node, infrastructure.KwokAnnotation, nil)
		unready := client.RawPatch(types.StrategicMergePatchType, []byte(`{"status":{"conditions":[{"type":"Ready","status":"False","reason":"KubeletNotReady","lastTransitionTime":"`+time.Now().UTC().Format(time.RFC3339)+`"}]}}`))
		Expect(env.client.Status().Patch(ctx, node, unready)).To(Succeed())
		edit(func(spec *v1alpha1.KarpenterMachineTemplateSpec) {
			spec.Rollout.ProgressDeadlineSeconds = new(int32(1))
		})
		step(v1alpha1.RolloutStopped)
		Expect(f.condition(ctx, v1alpha1.ConditionRolloutProgressing)).To(And(
			HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonRolloutStopped), HaveField("Message", ContainSubstring("NodeClaim "+fresh.Name+" has the Node "+node.Name))))
		drifted()

		By("undoing the change")
		maxPods(nil)
		step(v1alpha1.RolloutRolling)
		drifted(fresh.Name)
		env.delete(ctx, fresh)
		step(v1alpha1.RolloutComplete)
		drifted()
	})
})
