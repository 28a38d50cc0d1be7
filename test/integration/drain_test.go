// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/history"
)

// runProtected puts a Pod on a Node that must not be evicted until release is called.
func (e *environment) runProtected(ctx context.Context, name, node string) (pod *corev1.Pod, release func(context.Context)) {
	GinkgoHelper()
	labels := map[string]string{"app": name}
	pod = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name, Labels: labels},
		Spec:       corev1.PodSpec{NodeName: node, TerminationGracePeriodSeconds: new(int64(0)), Containers: []corev1.Container{{Name: "c", Image: "c"}}},
	}
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: new(intstr.FromInt32(0)),
			Selector:       &metav1.LabelSelector{MatchLabels: labels},
		},
	}
	for _, object := range []client.Object{pod, budget} {
		Expect(e.client.Create(ctx, object)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(e.client.Delete(ctx, object, client.GracePeriodSeconds(0)))).To(Succeed())
		})
	}
	// As the controller of budgets does. With Retry-After, the API server refuses evictions with a budget that it has not
	// observed, and then the client itself tries again ten times, every 10 s, in one reconcile of Karpenter's (kubernetes:
	// pkg/registry/core/pod/storage/eviction.go, createTooManyRequestsError).
	budget.Status.ObservedGeneration = budget.Generation
	Expect(e.client.Status().Update(ctx, budget)).To(Succeed())
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	Expect(e.client.Status().Update(ctx, pod)).To(Succeed())
	return pod, func(ctx context.Context) { e.delete(ctx, budget) }
}

var _ = forEachKind("A Node whose Machine a user or a health check deletes", func(k kind) {
	const byHand = "by hand"
	for name, remove := range map[string]func(context.Context, *clusterv1.Machine){
		byHand: func(ctx context.Context, machine *clusterv1.Machine) { env.delete(ctx, machine) },
		// Cluster API's health check writes this when it finds a Machine unhealthy; the MachineSet
		// then deletes the Machine. Nothing does so for a pool.
		"after a health check": func(ctx context.Context, machine *clusterv1.Machine) {
			Expect(env.get(ctx, machine)).To(Succeed())
			before := machine.DeepCopy()
			conditions.Set(machine, metav1.Condition{Type: clusterv1.MachineHealthCheckSucceededCondition, Status: metav1.ConditionFalse, Reason: clusterv1.MachineHealthCheckUnhealthyNodeReason})
			conditions.Set(machine, metav1.Condition{Type: clusterv1.MachineOwnerRemediatedCondition, Status: metav1.ConditionFalse, Reason: clusterv1.MachineOwnerRemediatedWaitingForRemediationReason})
			Expect(env.client.Status().Patch(ctx, machine, client.MergeFrom(before))).To(Succeed())
		},
	} {
		if k == machinePools && name != byHand {
			continue
		}
		It("is drained with Karpenter's rules first: "+name, func(ctx SpecContext) {
			f := k.newFixture("drain" + string(name[0]) + string(name[1])).breaks(history.WrongDelete).createReady(ctx)
			machines := f.watchMachines(ctx)
			claims := f.launch(ctx, 2)
			for _, claim := range claims {
				env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
			}
			machine, neighbour := env.waitMachine(ctx, claims[0]), env.waitMachine(ctx, claims[1])
			Expect(machine.Annotations).To(HaveKey(v1alpha1.DrainHookAnnotation))
			pod, release := env.runProtected(ctx, f.name, claims[0].Status.NodeName)

			remove(ctx, machine)
			Eventually(ctx, func() bool {
				return env.exists(ctx, machine) && !machine.DeletionTimestamp.IsZero()
			}).Should(BeTrue())
			Eventually(ctx, func() bool {
				return env.exists(ctx, claims[0]) && !claims[0].DeletionTimestamp.IsZero()
			}).Should(BeTrue(), "the claim is deleted, so that Karpenter drains")
			f.caughtUp(ctx)
			Expect(env.exists(ctx, machine)).To(BeTrue())
			Expect(env.exists(ctx, pod)).To(BeTrue())
			Expect(pod.DeletionTimestamp).To(BeNil(), "a Pod that must not be evicted")
			Expect(env.simulated(ctx, machine).DeletionTimestamp).To(BeNil(), "the instance")

			release(ctx)
			env.waitGone(ctx, pod)
			env.waitGone(ctx, claims[0])
			Expect(env.exists(ctx, machine)).To(BeFalse())
			env.waitReplicas(ctx, f, 1)
			f.caughtUp(ctx)
			Expect(machines.everDeleted()).To(ConsistOf(machine.Name))
			Expect(machines.everCreated()).To(ConsistOf(machine.Name, neighbour.Name))
		})
	}
})

var _ = forEachKind("A Node that is deleted", func(k kind) {
	It("is deleted with its claim and its Machine", func(ctx SpecContext) {
		f := k.newFixture("nodegone").createReady(ctx)
		claim := f.launchOne(ctx)
		env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		machine := env.waitMachine(ctx, claim)
		env.delete(ctx, env.nodeOf(ctx, claim.Status.ProviderID))
		env.waitGone(ctx, claim)
		Expect(env.exists(ctx, machine)).To(BeFalse())
		env.waitReplicas(ctx, f, 0)
	})

	It("also by force", func(ctx SpecContext) {
		f := k.newFixture("nodeforced").createReady(ctx)
		claim := f.launchOne(ctx)
		env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		machine := env.waitMachine(ctx, claim)
		env.forceGone(ctx, env.nodeOf(ctx, claim.Status.ProviderID))
		env.waitGone(ctx, claim)
		Expect(env.exists(ctx, machine)).To(BeFalse())
		env.waitReplicas(ctx, f, 0)
	})
})

var _ = forEachKind("A Machine that loses its finalizers by force", func(k kind) {
	It("is deleted with its claim, or is replaced if it had no Node yet", func(ctx SpecContext) {
		f := k.newFixture("machineforced").breaks(history.WrongDelete, history.Leak).createReady(ctx)
		claim := f.launchOne(ctx)
		env.waitFor(ctx, claim, karpv1.ConditionTypeInitialized)
		machine := env.waitMachine(ctx, claim)
		env.delete(ctx, claim)
		Eventually(ctx, func() bool { return env.exists(ctx, machine) && !machine.DeletionTimestamp.IsZero() }).Should(BeTrue())
		env.forceGone(ctx, machine)
		env.waitGone(ctx, claim)
		env.waitReplicas(ctx, f, 0)

		// Nothing deletes the Node of a Machine that has no finalizers.
		slow := k.newFixture("bootingforced").breaks(history.WrongDelete, history.Leak).delays(0, never, never).createReady(ctx)
		booting := slow.launchOne(ctx)
		first := env.waitMachine(ctx, booting)
		env.forceGone(ctx, first)
		Eventually(ctx, func() bool { return env.waitMachine(ctx, booting).UID != first.UID }).Should(BeTrue())
		env.waitReplicas(ctx, slow, 1)
	})
})

var _ = forEachKind("A claim that is created again with the same name", func(k kind) {
	It("within a second gets its own Machine", func(ctx SpecContext) {
		f := k.newFixture("samename").breaks(history.Finalizer).delays(0, 0, never).createReady(ctx)
		first := f.launchOne(ctx)
		old := env.waitMachine(ctx, first)
		second := first.DeepCopy()
		second.ObjectMeta = metav1.ObjectMeta{Name: first.Name, Labels: map[string]string{karpv1.NodePoolLabelKey: f.name}}
		second.Status = karpv1.NodeClaimStatus{}
		env.forceGone(ctx, first)
		Expect(env.client.Create(ctx, second)).To(Succeed())
		machine := env.waitMachine(ctx, second)
		Eventually(ctx, func() string { return env.providerID(ctx, second) }).Should(HavePrefix("sim://"))
		env.waitReplicas(ctx, f, 1)
		Expect(env.exists(ctx, old)).To(Equal(old.UID == machine.UID))
		Expect(env.stateNodesOf(second)).To(HaveLen(1))
	})
})
