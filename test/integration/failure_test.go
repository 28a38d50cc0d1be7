// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/history"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

// cheap is the name of an instance type that Karpenter would choose first.
const cheap = "cheap"

// noCapacity is the message of AWS.
var noCapacity = &infrav1.Failure{Percent: 100, Reason: "InsufficientInstanceCapacity", Message: "We currently do not have sufficient capacity in the Availability Zone you requested."}

// withCheap adds an instance type that costs less than the other one, with its own infrastructure template, whose
// machines never start.
func (f *fixture) withCheap(ctx context.Context, failure *infrav1.Failure) *fixture {
	GinkgoHelper()
	return f.withCheapMachines(ctx, func(spec *infrav1.SimulatedMachineSpec) {
		if spec.Failure = failure; failure == nil {
			spec.Delays.ProviderID = infrav1.Delay{Duration: metav1.Duration{Duration: never}}
		}
	})
}

// withCheapMachines adds such an instance type, whose machines are as change decides.
func (f *fixture) withCheapMachines(ctx context.Context, change func(*infrav1.SimulatedMachineSpec)) *fixture {
	GinkgoHelper()
	infrastructure := f.newInfrastructure(f.name + "-" + cheap)
	spec := machineSpec(infrastructure)
	*spec = *f.machine().DeepCopy()
	spec.InstanceType = cheap
	change(spec)
	Expect(env.client.Create(ctx, infrastructure)).To(Succeed())
	instanceType := *f.catalog.Spec.InstanceTypes[0].DeepCopy()
	instanceType.Name, instanceType.InfrastructureRef = cheap, f.infrastructureRef(infrastructure.GetName())
	instanceType.Offerings[0].Price = "0.01"
	f.catalog.Spec.InstanceTypes = append(f.catalog.Spec.InstanceTypes, instanceType)
	return f
}

// newPod returns a Pod that needs a Node from Karpenter.
func (f *fixture) newPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: f.name},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{karpv1.NodePoolLabelKey: f.name},
			Containers:   []corev1.Container{{Name: "c", Image: "c"}},
		},
	}
}

// createPod creates a Pod with the condition that kube-scheduler would set.
func (e *environment) createPod(ctx context.Context, pod *corev1.Pod) {
	GinkgoHelper()
	Expect(e.client.Create(ctx, pod)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(e.client.Delete(ctx, pod, client.GracePeriodSeconds(0)))).To(Succeed())
	})
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, LastTransitionTime: metav1.Now()}}
	Expect(e.client.Status().Update(ctx, pod)).To(Succeed())
}

// events returns the messages of the events of an object with a reason.
func (e *environment) events(ctx context.Context, kind, name, reason string) []string {
	GinkgoHelper()
	list := &corev1.EventList{}
	Expect(e.client.List(ctx, list, client.MatchingFields{"involvedObject.kind": kind, "reason": reason})).To(Succeed())
	return lo.FilterMap(list.Items, func(event corev1.Event, _ int) (string, bool) {
		return event.Message, strings.HasPrefix(event.InvolvedObject.Name, name)
	})
}

// failures returns how often an instance type's offering has failed consecutively.
func (f *fixture) failures(ctx context.Context, instanceType string) map[string]int32 {
	GinkgoHelper()
	Expect(env.get(ctx, f.template)).To(Succeed())
	found := map[string]int32{}
	for _, o := range f.template.Status.UnavailableOfferings {
		if o.InstanceType == instanceType {
			found[o.Reason] = o.Failures
		}
	}
	return found
}

// available reports whether the offering of an instance type is available.
func (f *fixture) available(ctx context.Context, instanceType string) bool {
	GinkgoHelper()
	instanceTypes, err := env.cloudProvider().GetInstanceTypes(ctx, f.pool)
	Expect(err).NotTo(HaveOccurred())
	for _, it := range instanceTypes {
		if it.Name == instanceType {
			return it.Offerings[0].Available
		}
	}
	Fail("there is no instance type " + instanceType)
	return false
}

var _ = forEachKind("A machine that cannot be launched", func(k kind) {
	It("makes Karpenter launch another offering, and is reported where users look", func(ctx SpecContext) {
		f := k.newFixture("nocapacity").withCheap(ctx, noCapacity).createReady(ctx)
		healthy := k.newFixture("untouched").createReady(ctx)
		machines := f.watchMachines(ctx)
		env.createPod(ctx, f.newPod())

		By("waiting for the first claim to fail, and the second to become a Node")
		var claim *karpv1.NodeClaim
		Eventually(ctx, func(g Gomega) {
			claims := lo.Filter(f.all(ctx), func(c karpv1.NodeClaim, _ int) bool { return c.Labels[corev1.LabelInstanceTypeStable] == instanceType })
			g.Expect(claims).To(HaveLen(1))
			claim = &claims[0]
		}).Should(Succeed())
		other := healthy.launchOne(ctx)
		env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		env.waitFor(ctx, other, karpv1.ConditionTypeInitialized)
		Eventually(ctx, func() int { return len(f.all(ctx)) }).Should(Equal(1), "claims")
		Eventually(ctx, func() int { return len(f.machines(ctx)) }).Should(Equal(1), "Machines")

		By("reading what is reported")
		Expect(f.failures(ctx, cheap)).To(Equal(map[string]int32{"InsufficientCapacity": 1}))
		condition := f.condition(ctx, v1alpha1.ConditionOfferingsAvailable)
		Expect(condition.IsFalse()).To(BeTrue())
		Expect(condition.Message).To(And(ContainSubstring("cheap/zone-a/on-demand"), ContainSubstring("sufficient capacity")))
		Expect(f.template.StatusConditions().Root().IsTrue()).To(BeTrue(), "Ready")
		for kind, name := range map[string]string{"KarpenterMachineTemplate": f.name, "NodeClaim": f.name, "Pod": f.name} {
			Eventually(ctx, func() []string { return env.events(ctx, kind, name, "InsufficientCapacity") }).
				Should(ContainElement(ContainSubstring("sufficient capacity")), kind)
		}
		Expect(f.available(ctx, cheap)).To(BeFalse())
		Expect(f.available(ctx, instanceType)).To(BeTrue())
		Expect(machines.everCreated()).To(HaveLen(2))
	})

	It("has failed if it has no provider ID in time, and is deleted", func(ctx SpecContext) {
		f := k.newFixture("toolate").withCheap(ctx, nil).breaks(history.WrongDelete)
		f.template.Spec.LaunchTimeoutSeconds = new(int32(300))
		f.createReady(ctx)
		launch := func() *karpv1.NodeClaim {
			GinkgoHelper()
			claim := f.newClaim()
			claim.Spec.Requirements[0].Values = []string{cheap, instanceType}
			Expect(env.client.Create(ctx, claim)).To(Succeed())
			env.waitMachine(ctx, claim)
			return claim
		}
		late := launch()
		env.later(ctx, 6*time.Minute, late, func(g Gomega) {
			g.Expect(f.failures(ctx, cheap)).To(Equal(map[string]int32{"LaunchTimeout": 1}))
			g.Expect(env.exists(ctx, late)).To(BeFalse())
			g.Expect(f.machines(ctx)).To(BeEmpty())
		})
		Expect(env.events(ctx, "NodeClaim", late.Name, "LaunchTimeout")).To(ContainElement(ContainSubstring("no provider ID for 5m0s")))

		next := launch()
		env.waitFor(ctx, next, karpv1.ConditionTypeInitialized)
		Expect(next.Labels).To(HaveKeyWithValue(corev1.LabelInstanceTypeStable, instanceType))
		Expect(uids(f.machines(ctx))).To(ConsistOf(env.waitMachine(ctx, next).UID))
	})

	It("is retried with increasing intervals, if nothing else fits", func(ctx SpecContext) {
		f := k.newFixture("hopeless")
		f.machine().Failure = noCapacity
		f.createReady(ctx)
		machines := f.watchMachines(ctx)
		env.createPod(ctx, f.newPod())
		Eventually(ctx, func() map[string]int32 { return f.failures(ctx, instanceType) }).Should(HaveLen(1))
		Eventually(ctx, func() int { return len(f.machines(ctx)) + len(f.all(ctx)) }).Should(BeZero(), "Machines and claims")
		tried, scheduled := len(machines.everCreated()), schedulings()
		// Karpenter schedules the Pod again every ten seconds. The first time it can use outdated data.
		Eventually(ctx, schedulings).Should(BeNumerically(">=", scheduled+2), "how often Karpenter has looked for a node")
		Expect(machines.everCreated()).To(HaveLen(tried))
		Expect(tried).To(BeNumerically("<=", 2))
	})

	It("deletes a claim without a NodePool, and reports that nothing replaces it", func(ctx SpecContext) {
		f := k.newFixture("standalone").withCheap(ctx, noCapacity).createReady(ctx)
		claim := f.newClaim()
		claim.Labels = nil
		claim.Spec.Requirements[0].Values = []string{cheap, instanceType}
		Expect(env.client.Create(ctx, claim)).To(Succeed())
		env.waitGone(ctx, claim)
		Eventually(ctx, func() []string {
			return env.events(ctx, "NodeClaim", claim.Name, v1alpha1.ReasonInsufficientCapacity)
		}).Should(ContainElement(ContainSubstring("nothing replaces it, because it has no NodePool")))
		Eventually(ctx, func() int { return len(f.machines(ctx)) }).Should(BeZero(), "Machines")
	})
})
