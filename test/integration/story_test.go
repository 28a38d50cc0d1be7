// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

// showReady waits until a claim shows how far its Machine is.
func (e *environment) showReady(ctx context.Context, g Gomega, claim *karpv1.NodeClaim, status metav1.ConditionStatus, reason string, message any) {
	GinkgoHelper()
	g.Expect(e.get(ctx, claim)).To(Succeed())
	g.Expect(claim.StatusConditions().Get(v1alpha1.ConditionMachineReady)).To(And(Not(BeNil()),
		HaveField("Status", status), HaveField("Reason", reason), HaveField("Message", message)))
}

// letKarpenterGiveUp makes core give up on a claim whose Node is missing, as if it had waited for 15 minutes.
func (e *environment) letKarpenterGiveUp(ctx context.Context, claim *karpv1.NodeClaim) {
	GinkgoHelper()
	e.clock.ahead.Store(int64(registrationTimeout))
	defer e.clock.ahead.Store(0)
	// The time of a deletion is that of the API server, which the clock does not shift.
	Expect(retry.RetryOnConflict(manyConflicts, func() error {
		if err := e.get(ctx, claim); err != nil {
			return err
		}
		for i := range claim.Status.Conditions {
			if condition := &claim.Status.Conditions[i]; condition.Type == karpv1.ConditionTypeRegistered {
				condition.LastTransitionTime = metav1.NewTime(time.Now().Add(-registrationTimeout))
			}
		}
		return e.client.Status().Update(ctx, claim)
	})).To(Succeed())
	e.waitGone(ctx, claim)
}

var _ = forEachKind("A claim tells its story:", func(k kind) {
	It("it names its Machine, in an event and in a condition", func(ctx SpecContext) {
		f := k.newFixture("story").createReady(ctx)
		claim := f.launchOne(ctx)
		env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		machine := env.waitMachine(ctx, claim)
		env.showReady(ctx, Default, claim, metav1.ConditionTrue, v1alpha1.ReasonMachineProvisioned, "Machine "+machine.Name+" has its provider ID")
		Eventually(ctx, func() []string { return env.events(ctx, "NodeClaim", claim.Name, v1alpha1.ReasonMachineLinked) }).
			Should(ConsistOf("Machine " + machine.Namespace + "/" + machine.Name + " serves this NodeClaim"))
		Expect(env.events(ctx, "NodeClaim", claim.Name, v1alpha1.ReasonProviderIDSet)).To(BeEmpty(), "the condition shows the same")
	})

	It("what the infrastructure reports about a slow Machine, and that its Node is missing, until it joins", func(ctx SpecContext) {
		f := k.newFixture("slowstory").delays(0, 0, never)
		f.machine().Failure = &infrav1.Failure{Percent: 100, Reason: "ImageMissing", Message: "attempt 1: there is no image for this version"}
		f.createReady(ctx)
		claim := f.launchOne(ctx)
		machine := env.waitMachine(ctx, claim)
		instance := env.simulated(ctx, machine)
		// Otherwise the first report is about the state before, and the next one comes 5 minutes later.
		Eventually(ctx, func(g Gomega) {
			g.Expect(env.get(ctx, machine)).To(Succeed())
			g.Expect(conditions.GetMessage(machine, clusterv1.MachineInfrastructureReadyCondition)).To(ContainSubstring("there is no image"))
		}).Should(Succeed())
		env.later(ctx, 4*time.Minute, claim, func(g Gomega) {
			env.showReady(ctx, g, claim, metav1.ConditionFalse, v1alpha1.ReasonWaitingForInfrastructure,
				And(HavePrefix("Machine "+machine.Name+" has no provider ID: "), ContainSubstring("there is no image for this version")))
		})

		By("repairing the image")
		env.change(ctx, instance, func() { instance.Spec.Failure = nil })
		Eventually(ctx, func(g Gomega) {
			env.showReady(ctx, g, claim, metav1.ConditionTrue, v1alpha1.ReasonMachineProvisioned, "Machine "+machine.Name+" has its provider ID")
		}).Should(Succeed())
		env.later(ctx, 10*time.Minute, claim, func(g Gomega) {
			env.showReady(ctx, g, claim, metav1.ConditionFalse, v1alpha1.ReasonWaitingForNode, "Machine "+machine.Name+" has its provider ID, and no Node has joined with it")
		})

		By("letting the Node join")
		env.change(ctx, instance, func() { instance.Spec.Delays = infrav1.Delays{} })
		env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		Eventually(ctx, func(g Gomega) {
			env.showReady(ctx, g, claim, metav1.ConditionTrue, v1alpha1.ReasonMachineProvisioned, "Machine "+machine.Name+" has its provider ID")
		}).Should(Succeed())
	})

	It("the next claim gets another offering if no Node has joined", func(ctx SpecContext) {
		f := k.newFixture("unjoined").withCheapMachines(ctx, func(spec *infrav1.SimulatedMachineSpec) {
			spec.Delays.NodeJoin = infrav1.Delay{Duration: metav1.Duration{Duration: never}}
		}).createReady(ctx)
		launch := func() *karpv1.NodeClaim {
			GinkgoHelper()
			claim := f.newClaim()
			claim.Spec.Requirements[0].Values = []string{cheap, instanceType}
			Expect(env.client.Create(ctx, claim)).To(Succeed())
			env.waitMachine(ctx, claim)
			return claim
		}
		first := launch()
		Eventually(ctx, func() string { return env.providerID(ctx, first) }).Should(HavePrefix("sim://"))
		// Cluster API writes the status of a Machine after its provider ID. Without it, nothing would have acted on the Machine
		// for 15 minutes of the operator's clock, and a missing Node would be no evidence against the offering.
		f.caughtUp(ctx)
		env.letKarpenterGiveUp(ctx, first)
		Expect(f.failures(ctx, cheap)).To(Equal(map[string]int32{v1alpha1.ReasonRegistrationTimeout: 1}))
		for kind, name := range map[string]string{"KarpenterMachineTemplate": f.name, "NodeClaim": first.Name} {
			Eventually(ctx, func() []string { return env.events(ctx, kind, name, v1alpha1.ReasonRegistrationTimeout) }).
				Should(ConsistOf(ContainSubstring("no Node has joined with the provider ID of Machine")), kind)
		}

		second := launch()
		env.waitFor(ctx, second, karpv1.ConditionTypeInitialized)
		Expect(second.Labels).To(HaveKeyWithValue(corev1.LabelInstanceTypeStable, instanceType))
		Expect(f.failures(ctx, cheap)).To(Equal(map[string]int32{v1alpha1.ReasonRegistrationTimeout: 1}), "one mark for each claim")
	})
})

var _ = Describe("A Pod whose NodePool is not ready", func() {
	It("gets an event with the reason of the template", func(ctx SpecContext) {
		f := machineDeployments.newFixture("poolnotready")
		f.template.Spec.Template.Spec.InfrastructureRef.Name = "does-not-exist"
		f.create(ctx)
		env.createPod(ctx, f.newPod())
		Eventually(ctx, func() []string { return env.events(ctx, "Pod", f.name, v1alpha1.ReasonNodePoolNotReady) }).
			Should(ConsistOf(And(HavePrefix("NodePool "+f.name+" launches no Nodes: "+v1alpha1.ReasonReferenceNotFound), ContainSubstring("does-not-exist"))))
	})
})
