// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

const (
	// deadlocked is more than the time for which a Node must have the condition deadlock until it is repaired.
	deadlocked = 11 * time.Minute
	// rebootTimeout is more than the time that a machine may take to restart.
	rebootTimeout = deadlocked + 21*time.Minute
)

// remediate lets the fixture name a remediation template whose restarts have an effect, and creates it.
func (f *fixture) remediate(ctx context.Context, effect infrav1.RemediationEffect) {
	GinkgoHelper()
	template := &infrav1.SimulatedRemediationTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: f.name}}
	template.Spec.Template.Spec.Effect = effect
	Expect(env.client.Create(ctx, template)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { env.delete(ctx, template) })
	f.template.Spec.Remediation = f.remediation()
	f.pool.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "100%"}}
}

// remediation names the remediation template with the name of the fixture.
func (f *fixture) remediation() *v1alpha1.Remediation {
	return &v1alpha1.Remediation{TemplateRef: clusterv1.ContractVersionedObjectReference{
		APIGroup: infrav1.GroupVersion.Group, Kind: "SimulatedRemediationTemplate", Name: f.name,
	}}
}

// requests returns the remediation requests for Machines of the fixture.
func (f *fixture) requests(ctx context.Context) []infrav1.SimulatedRemediation {
	GinkgoHelper()
	list := &infrav1.SimulatedRemediationList{}
	Expect(env.client.List(ctx, list, client.InNamespace(served.Namespace))).To(Succeed())
	return lo.Filter(list.Items, func(r infrav1.SimulatedRemediation, _ int) bool {
		return r.Annotations[clusterv1.TemplateClonedFromNameAnnotation] == f.name
	})
}

// initialized launches claims and waits for their Nodes.
func (f *fixture) initialized(ctx context.Context, count int) []*karpv1.NodeClaim {
	GinkgoHelper()
	claims := f.launch(ctx, count)
	for _, claim := range claims {
		env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
	}
	return claims
}

// rebooting returns the reason of the claim's condition Rebooting; empty if it has none.
func rebooting(ctx context.Context, g Gomega, claim *karpv1.NodeClaim) string {
	g.Expect(env.get(ctx, claim)).To(Succeed())
	condition := claim.StatusConditions().Get(karpv1.ConditionTypeRebooting)
	if condition == nil {
		return ""
	}
	return condition.Reason
}

// The feature gate NodeRepair is on.
var _ = Describe("An unhealthy Node of a template with remediation", func() {
	It("stays if the restart of its machine helps, and the request is removed", func(ctx SpecContext) {
		f := machineDeployments.newFixture("restarted")
		f.remediate(ctx, infrav1.RemediationHeals)
		f.createReady(ctx)
		Eventually(ctx, func() metav1.ConditionStatus {
			return lo.FromPtr(f.condition(ctx, v1alpha1.ConditionRemediationReady)).Status
		}).Should(Equal(metav1.ConditionTrue))
		claims := f.initialized(ctx, 2)
		sick := claims[0]
		machine := env.waitMachine(ctx, sick)
		boot := env.nodeOf(ctx, sick.Status.ProviderID).Status.NodeInfo.BootID
		env.setCondition(ctx, sick, deadlock, corev1.ConditionTrue)

		env.later(ctx, deadlocked, sick, func(g Gomega) {
			g.Expect(rebooting(ctx, g, sick)).To(Equal(karpv1.RebootReasonSucceeded))
		})
		Expect(env.nodeOf(ctx, sick.Status.ProviderID).Status.NodeInfo.BootID).NotTo(Equal(boot))
		Eventually(ctx, func() []infrav1.SimulatedRemediation { return f.requests(ctx) }).Should(BeEmpty())
		env.waitFor(ctx, sick, karpv1.ConditionTypeInitialized)
		Eventually(ctx, func(g Gomega) {
			g.Expect(env.get(ctx, sick)).To(Succeed())
			g.Expect(sick.Annotations).NotTo(HaveKey(v1alpha1.RemediationAnnotation))
			g.Expect(env.nodeOf(ctx, sick.Status.ProviderID).Spec.Taints).NotTo(ContainElement(HaveField("Key", karpv1.RebootingTaintKey)))
		}).Should(Succeed())
		Expect(sick.DeletionTimestamp).To(BeNil())
		Expect(env.exists(ctx, machine)).To(BeTrue())
		Expect(f.machines(ctx)).To(HaveLen(2), "nothing is replaced")
		Expect(env.events(ctx, "NodeClaim", sick.Name, v1alpha1.ReasonRemediationRequested)).To(HaveLen(1))
	})

	It("is replaced if its machine does not come back, and the request is removed", func(ctx SpecContext) {
		f := machineDeployments.newFixture("unrestarted")
		f.remediate(ctx, infrav1.RemediationFails)
		f.createReady(ctx)
		claims := f.initialized(ctx, 2)
		sick := claims[0]
		env.setCondition(ctx, sick, deadlock, corev1.ConditionTrue)

		env.later(ctx, deadlocked, sick, func(g Gomega) {
			g.Expect(rebooting(ctx, g, sick)).To(Equal(karpv1.RebootReasonIssued))
			g.Expect(f.requests(ctx)).To(HaveLen(1))
		})
		Expect(f.machines(ctx)).To(HaveLen(2), "the Machine stays while its machine may come back")
		env.later(ctx, rebootTimeout, sick, func(g Gomega) {
			g.Expect(apierrors.IsNotFound(env.get(ctx, sick))).To(BeTrue(), "NodeClaim %s still exists", sick.Name)
			g.Expect(f.machines(ctx)).To(HaveLen(1))
		})
		Expect(f.requests(ctx)).To(BeEmpty())
		Expect(env.get(ctx, claims[1])).To(Succeed())
		Expect(claims[1].DeletionTimestamp).To(BeNil())
	})

	It("is replaced at once if the remediation template does not exist, which the template reports", func(ctx SpecContext) {
		f := machineDeployments.newFixture("unremediated")
		f.template.Spec.Remediation = f.remediation()
		f.pool.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "100%"}}
		f.createReady(ctx)
		Eventually(ctx, func(g Gomega) {
			condition := lo.FromPtr(f.condition(ctx, v1alpha1.ConditionRemediationReady))
			g.Expect(condition.Status).To(Equal(metav1.ConditionFalse))
			g.Expect(condition.Reason).To(Equal(v1alpha1.ReasonReferenceNotFound))
		}).Should(Succeed())
		claims := f.initialized(ctx, 2)
		sick := claims[0]
		env.setCondition(ctx, sick, deadlock, corev1.ConditionTrue)

		env.later(ctx, deadlocked, sick, func(g Gomega) {
			g.Expect(apierrors.IsNotFound(env.get(ctx, sick))).To(BeTrue(), "NodeClaim %s still exists", sick.Name)
			g.Expect(f.machines(ctx)).To(HaveLen(1))
		})
		Expect(f.requests(ctx)).To(BeEmpty())
	})

	It("is restarted only within the budget of its NodePool", func(ctx SpecContext) {
		f := machineDeployments.newFixture("budgeted")
		f.remediate(ctx, infrav1.RemediationFails)
		f.pool.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "1"}}
		f.createReady(ctx)
		claims := f.initialized(ctx, 10) // of which 20 % may be unhealthy
		sick := claims[:2]
		for _, claim := range sick {
			env.setCondition(ctx, claim, deadlock, corev1.ConditionTrue)
		}
		restarts := func(g Gomega) int {
			return lo.CountBy(sick, func(claim *karpv1.NodeClaim) bool { return rebooting(ctx, g, claim) != "" })
		}
		env.later(ctx, deadlocked, sick[0], func(g Gomega) { g.Expect(restarts(g)).To(Equal(1)) })
		env.later(ctx, deadlocked, sick[0], func(g Gomega) {
			Consistently(ctx, func(g Gomega) { g.Expect(restarts(g)).To(Equal(1)) }).WithTimeout(11 * time.Second).Should(Succeed()) // core decides every 10 s
		})
		Expect(f.requests(ctx)).To(HaveLen(1))
	})
})
