// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/generate"
	controlplanev1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/controlplane/v1alpha1"
)

var _ = Describe("A MachineSet that an upgrade of the control plane blocks", long, func() {
	It("fails no claim, delays no removal, and then creates no more Machines than needed", func(ctx SpecContext) {
		f := machineDeployments.newFixture("blocked")
		f.template.Spec.LaunchTimeoutSeconds = new(int32(30))
		f.template.Spec.Template.Spec.Version = "v1.36.3"
		f.createReady(ctx)
		claims := f.launch(ctx, 3)
		for _, claim := range claims {
			env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		}
		removed := []string{env.waitMachine(ctx, claims[0]).Name, env.waitMachine(ctx, claims[1]).Name}
		machines := f.watchMachines(ctx)

		finish := env.upgradeControlPlane(ctx)
		waiting := f.launchOne(ctx)
		Eventually(ctx, func(g Gomega) {
			g.Expect(env.get(ctx, waiting)).To(Succeed())
			g.Expect(waiting.StatusConditions().Get(v1alpha1.ConditionMachineAvailable)).To(And(Not(BeNil()),
				HaveField("Reason", v1alpha1.ReasonBlocked), HaveField("Message", ContainSubstring("is upgrading"))))
			g.Expect(f.condition(ctx, v1alpha1.ConditionMachinesProgressing)).To(And(Not(BeNil()),
				HaveField("Reason", v1alpha1.ReasonBlocked), HaveField("Message", ContainSubstring("is upgrading"))))
			g.Expect(env.events(ctx, "NodeClaim", waiting.Name, v1alpha1.ReasonBlocked)).To(ContainElement(ContainSubstring("is upgrading")))
		}).Should(Succeed())

		for _, claim := range claims[:2] {
			env.delete(ctx, claim)
		}
		for _, claim := range claims[:2] {
			env.waitGone(ctx, claim)
		}
		Expect(machines.everDeleted()).To(ConsistOf(removed))
		// The remaining one, and the one that a claim waits for.
		Eventually(ctx, func() int32 { return f.resource(ctx).Replicas() }).Should(BeEquivalentTo(2))
		// Nothing should happen when launchTimeoutSeconds is over, so there is no event to wait for.
		Eventually(ctx, func() time.Duration { return time.Since(waiting.CreationTimestamp.Time) }).Should(BeNumerically(">", 35*time.Second))
		env.nudge(ctx, waiting)
		f.caughtUp(ctx)
		Expect(env.exists(ctx, waiting)).To(BeTrue())
		Expect(f.failures(ctx, instanceType)).To(BeEmpty())

		finish(ctx)
		env.waitFor(ctx, waiting, karpv1.ConditionTypeInitialized)
		Expect(machines.everCreated()).To(HaveLen(4), "one Machine more than there were")
		Expect(machines.everDeleted()).To(ConsistOf(removed))
		Eventually(ctx, func() bool { return f.condition(ctx, v1alpha1.ConditionMachinesProgressing).IsTrue() }).Should(BeTrue())
		Expect(env.get(ctx, waiting)).To(Succeed())
		Expect(waiting.StatusConditions().Get(v1alpha1.ConditionMachineAvailable).IsTrue()).To(BeTrue())
	})

	It("leaves its waiting claim to that of the next version", func(ctx SpecContext) {
		f := machineDeployments.newFixture("blockedversion").createReady(ctx)
		env.setControlPlane(ctx, "v1.36.3", "v1.35.0")
		machines := f.watchMachines(ctx)
		claim := f.launchOne(ctx)
		Eventually(ctx, func() []clusterv1.MachineSet { return f.machineSets(ctx) }).Should(HaveLen(1))
		before := f.resource(ctx)
		Expect(before.MachineTemplate().Spec.Version).To(Equal("v1.36.3"))

		env.setControlPlane(ctx, "v1.37.0", "v1.36.3")
		Eventually(ctx, func(g Gomega) {
			g.Expect(env.get(ctx, claim)).To(Succeed())
			g.Expect(claim.Annotations[v1alpha1.ScalableResourceAnnotation]).NotTo(Equal(before.GetName()))
			g.Expect(generate.ParseHashes(claim.Annotations[v1alpha1.MachineHashesAnnotation]).Version).To(Equal("v1.37.0"))
		}).Should(Succeed())
		// Otherwise the upgrade ends while the previous resource still asks for the claim's Machine.
		Eventually(ctx, func(g Gomega) {
			g.Expect(f.machineSets(ctx)).To(ContainElement(Satisfy(func(set clusterv1.MachineSet) bool {
				return metav1.GetControllerOf(&set).Name == before.GetName() &&
					*set.Spec.Replicas == 0 && set.Status.ObservedGeneration == set.Generation
			})))
		}).Should(Succeed())
		env.setControlPlane(ctx, "v1.37.0", "v1.37.0")
		env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		machine := env.waitMachine(ctx, claim)
		Expect(machine.Spec.Version).To(Equal("v1.37.0"))
		Expect(machines.everCreated()).To(ConsistOf(machine.Name))
		Expect(f.failures(ctx, instanceType)).To(BeEmpty())
	})

	It("serves the claim that Karpenter creates after it gives up, with one Machine", func(ctx SpecContext) {
		f := machineDeployments.newFixture("blockedretry").createReady(ctx)
		finish := env.upgradeControlPlane(ctx)
		machines := f.watchMachines(ctx)
		first := f.launchOne(ctx)
		Eventually(ctx, func() []clusterv1.MachineSet { return f.machineSets(ctx) }).Should(HaveLen(1))
		resource := f.resource(ctx).GetName()
		env.later(ctx, registrationTimeout+time.Minute, first, func(g Gomega) { g.Expect(env.exists(ctx, first)).To(BeFalse()) })
		Expect(f.failures(ctx, instanceType)).To(BeEmpty())

		second := f.launchOne(ctx)
		env.waitFor(ctx, second, karpv1.ConditionTypeLaunched)
		Eventually(ctx, func() int32 { return f.resource(ctx).Replicas() }).Should(BeEquivalentTo(1))
		Expect(f.resource(ctx).GetName()).To(Equal(resource))
		finish(ctx)
		machine := env.waitMachine(ctx, second)
		Expect(machines.everCreated()).To(ConsistOf(machine.Name))
	})
})

// upgradeControlPlane begins an upgrade of the control plane. Until it is finished, at the latest
// at the end of the spec, Cluster API's preflight check ControlPlaneIsStable fails.
func (e *environment) upgradeControlPlane(ctx context.Context) (finish func(context.Context)) {
	GinkgoHelper()
	e.setControlPlane(ctx, "v1.36.3", "v1.35.0")
	return func(ctx context.Context) { e.setControlPlane(ctx, "v1.36.3", "v1.36.3") }
}

// setControlPlane sets the version of the control plane, and the one that it runs. At the end of the
// spec it has none again.
func (e *environment) setControlPlane(ctx context.Context, version, running string) {
	GinkgoHelper()
	plane := &controlplanev1.SimulatedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: served.Name}}
	set := func(ctx context.Context, version, running string) {
		GinkgoHelper()
		e.change(ctx, plane, func() { plane.Spec.Version, plane.Spec.RunningVersion = version, running })
		Eventually(ctx, func(g Gomega) {
			g.Expect(e.client.Get(ctx, client.ObjectKeyFromObject(plane), plane)).To(Succeed())
			g.Expect(plane.Status.Version).To(Equal(lo.CoalesceOrEmpty(running, version)))
		}).Should(Succeed())
	}
	DeferCleanup(func(ctx SpecContext) { set(ctx, "", "") })
	set(ctx, version, running)
}
