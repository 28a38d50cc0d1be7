// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/history"
)

// instanceID gives the instance of a Machine another provider ID, and waits until Cluster API has copied it.
func (e *environment) instanceID(ctx context.Context, machine *clusterv1.Machine, id string) {
	GinkgoHelper()
	instance := e.simulated(ctx, machine)
	e.change(ctx, instance, func() { instance.Spec.ProviderID = id })
	Eventually(ctx, func(g Gomega) {
		g.Expect(e.get(ctx, machine)).To(Succeed())
		g.Expect(machine.Spec.ProviderID).To(Equal(id))
	}).Should(Succeed())
}

// protected is a claim whose Node runs a Pod that must not be evicted until release is called.
type protected struct {
	claim   *karpv1.NodeClaim
	machine *clusterv1.Machine
	node    *corev1.Node
	pod     *corev1.Pod
	release func(context.Context)
}

// launchProtected launches claims and puts a protected Pod on the Node of each.
func (f *fixture) launchProtected(ctx context.Context, count int) []protected {
	GinkgoHelper()
	var all []protected
	for _, claim := range f.launch(ctx, count) {
		env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		p := protected{claim: claim, machine: env.waitMachine(ctx, claim), node: env.nodeOf(ctx, claim.Status.ProviderID)}
		p.pod, p.release = env.runProtected(ctx, claim.Name, claim.Status.NodeName)
		all = append(all, p)
	}
	return all
}

// staysAll expects that objects exist and are not being deleted.
func staysAll(ctx context.Context, g Gomega, objects ...client.Object) {
	for _, object := range objects {
		g.Expect(env.exists(ctx, object)).To(BeTrue(), "%T %s", object, object.GetName())
		g.Expect(object.GetDeletionTimestamp()).To(BeNil(), "%T %s", object, object.GetName())
	}
}

// unchanged reads a claim and returns the status of its condition ProviderIDUnchanged.
func unchanged(ctx context.Context, claim *karpv1.NodeClaim) metav1.ConditionStatus {
	GinkgoHelper()
	Expect(env.get(ctx, claim)).To(Succeed())
	return claim.StatusConditions().Get(v1alpha1.ConditionProviderIDUnchanged).GetStatus()
}

// Cluster API finds a Node only by the ID that its Machine has now, and Karpenter only by the one that the claim has.
var _ = Describe("The Nodes of Machines whose provider ID the provider changes", func() {
	It("stay, and are drained when their claims are deleted", func(ctx SpecContext) {
		f := machineDeployments.newFixture("changedid").createReady(ctx)
		all := f.launchProtected(ctx, 2)
		for _, p := range all {
			env.instanceID(ctx, p.machine, p.claim.Status.ProviderID+"-new")
		}
		for _, p := range all {
			Eventually(ctx, func() metav1.ConditionStatus { return unchanged(ctx, p.claim) }).Should(Equal(metav1.ConditionFalse))
		}
		first, second := all[0], all[1]
		Eventually(ctx, func() []string {
			return env.events(ctx, "NodeClaim", first.claim.Name, v1alpha1.ReasonProviderIDChanged)
		}).ShouldNot(BeEmpty())
		f.caughtUp(ctx)
		for _, p := range all {
			staysAll(ctx, Default, p.claim, p.machine, p.node, p.pod)
			Expect(p.claim.Status.ProviderID).To(Equal(p.node.Spec.ProviderID))
		}

		By("correcting the ID of one Machine")
		env.instanceID(ctx, second.machine, second.claim.Status.ProviderID)
		Eventually(ctx, func() metav1.ConditionStatus { return unchanged(ctx, second.claim) }).Should(Equal(metav1.ConditionTrue))

		By("deleting the claim of the other")
		env.delete(ctx, first.claim)
		Eventually(ctx, func() bool { return env.exists(ctx, first.node) && !first.node.DeletionTimestamp.IsZero() }).Should(BeTrue(), "Karpenter drains the Node")
		f.caughtUp(ctx)
		staysAll(ctx, Default, first.machine, first.pod)
		first.release(ctx)
		for _, object := range []client.Object{first.pod, first.claim, first.node, first.machine} {
			env.waitGone(ctx, object)
		}
		staysAll(ctx, Default, second.claim, second.machine, second.node, second.pod)
	})

	// Cluster API deletes a Node whose ID leaves spec.providerIDList of the MachinePool (docs/design/machinepools.md).
	It("are drained in a MachinePool", func(ctx SpecContext) {
		f := machinePools.newFixture("changedid").createReady(ctx)
		p := f.launchProtected(ctx, 1)[0]
		env.instanceID(ctx, p.machine, p.claim.Status.ProviderID+"-new")
		Eventually(ctx, func() bool { return env.exists(ctx, p.node) && !p.node.DeletionTimestamp.IsZero() }).Should(BeTrue())
		f.caughtUp(ctx)
		staysAll(ctx, Default, p.machine, p.pod)
		p.release(ctx)
		// Karpenter may have launched another Node for the Pod meanwhile.
		for _, object := range []client.Object{p.pod, p.claim, p.node, p.machine} {
			env.waitGone(ctx, object)
		}
	})
})

var _ = forEachKind("A Node whose Pods must not be evicted", func(k kind) {
	It("is drained by Cluster API when Karpenter does not find it, and does not stay then", func(ctx SpecContext) {
		f := k.newFixture("lostid").breaks(history.ProviderID, history.WrongDelete).createReady(ctx)
		p := f.launchProtected(ctx, 1)[0]
		claim, machine, pod := p.claim, p.machine, p.pod
		env.setProviderID(ctx, claim, "sim://lost/"+claim.Name)

		env.delete(ctx, claim)
		Eventually(ctx, func() bool { return env.exists(ctx, machine) && !machine.DeletionTimestamp.IsZero() }).Should(BeTrue())
		f.caughtUp(ctx)
		Expect(env.exists(ctx, machine)).To(BeTrue())
		Expect(env.simulated(ctx, machine).DeletionTimestamp).To(BeNil(), "the instance")
		Expect(env.exists(ctx, pod)).To(BeTrue())
		Expect(pod.DeletionTimestamp).To(BeNil(), "a Pod that must not be evicted")
		p.release(ctx)
		for _, object := range []client.Object{pod, machine, p.node, claim} {
			env.waitGone(ctx, object)
		}
	})
})
