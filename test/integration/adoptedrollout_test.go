// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/history"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

// Only MachineDeployments are adopted.
var _ = Describe("An adopted MachineDeployment that a user rolls out", long, func() {
	It("replaces all of its Machines, and Karpenter drains those of claims first", func(ctx SpecContext) {
		const own = 1
		f := machineDeployments.newFixture("adoptedrollout").breaks(history.WrongDelete).delays(0, 0, 0)
		existing := f.existing(own)
		// All new Machines are created at once.
		existing.Spec.Rollout.Strategy.RollingUpdate.MaxSurge = new(intstr.FromString("100%"))
		machines := newWatch(ctx, &clusterv1.Machine{}, func(machine client.Object) bool {
			return machine.GetLabels()[clusterv1.MachineDeploymentNameLabel] == existing.Name
		})
		f.createFinding(ctx, existing)
		claims := f.launch(ctx, 2)
		for _, claim := range claims {
			env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		}
		before := machinesOf(ctx, existing)
		Expect(before).To(HaveLen(own + len(claims)))
		pod, release := env.runProtected(ctx, f.name, claims[0].Status.NodeName)
		mark := env.requests.mark()

		By("referring to another infrastructure template")
		f.rollOut(ctx, existing)
		Eventually(ctx, func() int { return setsInUse(ctx, existing) }).Should(Equal(2))
		By("deleting a claim during the rollout")
		env.delete(ctx, claims[1])
		By("letting Cluster API delete the Machine of the other claim")
		protected := env.waitDeleting(ctx, before, claims[0])
		Eventually(ctx, func(g Gomega) {
			g.Expect(env.get(ctx, claims[0])).To(Succeed())
			g.Expect(claims[0].DeletionTimestamp).NotTo(BeNil(), "the claim is deleted, so that Karpenter drains")
			g.Expect(claims[0].StatusConditions().Get(karpv1.ConditionTypeDrained)).To(HaveField("Status", Not(Equal(metav1.ConditionTrue))))
		}).Should(Succeed())
		Expect(env.exists(ctx, pod)).To(BeTrue())
		Expect(pod.DeletionTimestamp).To(BeNil(), "a Pod that must not be evicted")
		Expect(env.simulated(ctx, protected).DeletionTimestamp).To(BeNil(), "the instance")
		release(ctx)

		By("waiting for the end")
		for i := range before {
			env.waitGone(ctx, &before[i])
		}
		for _, claim := range claims {
			env.waitGone(ctx, claim)
		}
		Eventually(ctx, func(g Gomega) {
			g.Expect(env.get(ctx, existing)).To(Succeed())
			g.Expect(lo.FromPtr(existing.Spec.Replicas)).To(BeEquivalentTo(own))
			g.Expect(machinesOf(ctx, existing)).To(HaveLen(own))
		}).Should(Succeed())
		kept := uids(machinesOf(ctx, existing))

		By("launching another claim")
		f.waitReady(ctx)
		next := f.launchOne(ctx)
		env.waitFor(ctx, next, karpv1.ConditionTypeInitialized)
		Expect(uids(machinesOf(ctx, existing))).To(ConsistOf(append(kept, env.waitMachine(ctx, next).UID)))
		env.delete(ctx, next)
		env.waitGone(ctx, next)

		// Each Machine was replaced once, and one more was created for the last claim.
		Expect(machines.everCreated()).To(HaveLen(2*len(before) + 1))
		Expect(env.requests.since(mark, func(r request) bool {
			replicas := replicasIn(r)
			return strings.HasSuffix(r.path, "/machinedeployments/"+existing.Name) && replicas > 0 && (replicas < own || replicas > own+len(claims))
		})).To(BeEmpty(), "replicas that do not match its unmanaged Machines and claims")
	})
})

// rollOut makes an adopted MachineDeployment refer to another infrastructure template, so that
// Cluster API replaces all of its Machines.
func (f *fixture) rollOut(ctx context.Context, existing *clusterv1.MachineDeployment) {
	GinkgoHelper()
	next := f.infrastructure.(*infrav1.SimulatedMachineTemplate).DeepCopy()
	next.ObjectMeta = metav1.ObjectMeta{Namespace: next.Namespace, Name: next.Name + "-next"}
	Expect(env.client.Create(ctx, next)).To(Succeed())
	env.change(ctx, existing, func() { existing.Spec.Template.Spec.InfrastructureRef.Name = next.Name })
}

// setsInUse returns the number of MachineSets of a MachineDeployment with Machines.
func setsInUse(ctx context.Context, existing *clusterv1.MachineDeployment) int {
	GinkgoHelper()
	sets := &clusterv1.MachineSetList{}
	Expect(env.client.List(ctx, sets, client.InNamespace(existing.Namespace), client.MatchingLabels{clusterv1.MachineDeploymentNameLabel: existing.Name})).To(Succeed())
	return lo.CountBy(sets.Items, func(set clusterv1.MachineSet) bool { return lo.FromPtr(set.Status.Replicas) > 0 })
}

// waitDeleting waits until the Machine of a claim is being deleted, and returns it.
func (e *environment) waitDeleting(ctx context.Context, machines []clusterv1.Machine, claim *karpv1.NodeClaim) *clusterv1.Machine {
	GinkgoHelper()
	machine, found := lo.Find(machines, func(m clusterv1.Machine) bool { return m.Labels[v1alpha1.NodeClaimUIDLabel] == string(claim.UID) })
	Expect(found).To(BeTrue(), "the Machine of NodeClaim %s", claim.Name)
	Eventually(ctx, func() bool { return e.exists(ctx, &machine) && !machine.DeletionTimestamp.IsZero() }).Should(BeTrue())
	return &machine
}
