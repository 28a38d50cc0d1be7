// SPDX-License-Identifier: Apache-2.0

//go:build contract

package contract

import (
	"context"

	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

// instance returns the infrastructure object of a Machine.
func (w *world) instance(ctx context.Context, g Gomega, machine string) *infrav1.SimulatedMachine {
	object := machineNamed(machine)
	g.Expect(w.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
	instance := &infrav1.SimulatedMachine{}
	g.Expect(w.Get(ctx, objectKey(object.Spec.InfrastructureRef.Name), instance)).To(Succeed())
	return instance
}

// nodeOf returns the Node of a Machine.
func (w *world) nodeOf(ctx context.Context, g Gomega, machine string) *corev1.Node {
	object := machineNamed(machine)
	g.Expect(w.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
	node := &corev1.Node{}
	g.Expect(w.Get(ctx, client.ObjectKey{Name: object.Status.NodeRef.Name}, node)).To(Succeed())
	return node
}

// expectHeld deletes a Machine and expects that a hook keeps its instance until the hook is removed.
func (w *world) expectHeld(ctx context.Context, g Gomega, machine, hook, reason string) {
	w.annotate(ctx, g, machine, hook)
	g.Expect(w.Delete(ctx, machineNamed(machine))).To(Succeed())
	w.expectReason(ctx, g, machine, clusterv1.MachineDeletingCondition, reason)
	g.Consistently(func(g Gomega) {
		g.Expect(w.instance(ctx, g, machine).DeletionTimestamp).To(BeNil(), "the deletion of the infrastructure object")
	}).Should(Succeed())
	w.release(ctx, g, machine, hook)
	w.expectGone(ctx, g, machineNamed(machine))
}

func drainHookWithNode(ctx context.Context, g Gomega, w *world) {
	d := w.newDeployment(ctx, g, "drainhook", 1, 0)
	w.expectHeld(ctx, g, d.expectNodes(1)[0], drainHookName, clusterv1.MachineDeletingWaitingForPreDrainHookReason)
}

func drainHookWithoutNode(ctx context.Context, g Gomega, w *world) {
	d := w.newDeployment(ctx, g, "nodelessdrainhook", 1, never)
	name := d.expectMachines(1)[0]
	w.annotate(ctx, g, name, drainHookName)
	g.Expect(w.Delete(ctx, machineNamed(name))).To(Succeed())
	w.expectGone(ctx, g, machineNamed(name))
}

func terminateHook(ctx context.Context, g Gomega, w *world) {
	d := w.newDeployment(ctx, g, "terminatehook", 1, never)
	w.expectHeld(ctx, g, d.expectMachines(1)[0], terminateHookName, clusterv1.MachineDeletingWaitingForPreTerminateHookReason)
}

func clusterDeletion(ctx context.Context, g Gomega, w *world) {
	const name = "ending"
	in := w.newCluster(ctx, g, name, "")
	d := w.newDeployment(ctx, g, name, 1, 0, in)
	machine := d.expectNodes(1)[0]
	w.annotate(ctx, g, machine, drainHookName)
	w.annotate(ctx, g, machine, terminateHookName)
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	g.Expect(w.Delete(ctx, cluster)).To(Succeed())
	w.expectReason(ctx, g, machine, clusterv1.MachineDeletingCondition, clusterv1.MachineDeletingWaitingForPreTerminateHookReason)
	g.Consistently(func() error { return w.Get(ctx, objectKey(name), cluster) }).Should(Succeed())
	w.release(ctx, g, machine, terminateHookName)
	w.expectGone(ctx, g, machineNamed(machine))
	w.expectGone(ctx, g, cluster)
}

func drainEnds(ctx context.Context, g Gomega, w *world) {
	d := w.newDeployment(ctx, g, "drained", 1, 0)
	machine := d.expectNodes(1)[0]
	labels := map[string]string{"app": d.name}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: d.name, Labels: labels},
		Spec: corev1.PodSpec{
			NodeName:    w.nodeOf(ctx, g, machine).Name,
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers:  []corev1.Container{{Name: "app", Image: "registry.k8s.io/pause:3.10"}},
		},
	}
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: d.name},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: lo.ToPtr(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels}},
	}
	for _, object := range []client.Object{budget, pod} {
		g.Expect(w.Create(ctx, object)).To(Succeed())
	}
	g.Eventually(func(g Gomega) {
		g.Expect(w.Get(ctx, client.ObjectKeyFromObject(budget), budget)).To(Succeed())
		g.Expect(budget.Status.CurrentHealthy).To(BeEquivalentTo(1), "healthy Pods of the PodDisruptionBudget")
	}).Should(Succeed())
	g.Expect(w.Delete(ctx, machineNamed(machine))).To(Succeed())
	w.expectReason(ctx, g, machine, clusterv1.MachineDeletingCondition, clusterv1.MachineDeletingDrainingNodeReason)
	g.Consistently(func() error { return w.Get(ctx, client.ObjectKeyFromObject(pod), pod) }).Should(Succeed())
	for _, annotation := range []string{clusterv1.ExcludeNodeDrainingAnnotation, clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation} {
		w.annotate(ctx, g, machine, annotation)
	}
	w.expectGone(ctx, g, machineNamed(machine))
}

func infrastructureDeleted(ctx context.Context, g Gomega, w *world) {
	d := w.newDeployment(ctx, g, "instancedeleted", 1, 0)
	machine := d.expectNodes(1)[0]
	g.Expect(w.Delete(ctx, w.instance(ctx, g, machine))).To(Succeed())
	w.expectReason(ctx, g, machine, clusterv1.MachineInfrastructureReadyCondition, clusterv1.MachineInfrastructureDeletedReason)
	object := machineNamed(machine)
	g.Expect(w.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
	g.Expect(meta.IsStatusConditionFalse(object.Status.Conditions, clusterv1.MachineInfrastructureReadyCondition)).To(BeTrue(), "InfrastructureReady is False")
	g.Expect(object.DeletionTimestamp).To(BeNil(), "the deletion of the Machine")
}

func orphanStays(ctx context.Context, g Gomega, w *world) {
	d := w.newDeployment(ctx, g, "orphan", 0, never)
	change(ctx, g, w, &infrav1.SimulatedMachineTemplate{ObjectMeta: d.meta()}, func(template *infrav1.SimulatedMachineTemplate) {
		template.Spec.Template.Spec.Delays.ProviderID.Duration.Duration = never
	})
	d.scale(1)
	machine := d.expectMachines(1)[0]
	instance := w.instance(ctx, g, machine)
	g.Expect(w.Delete(ctx, instance)).To(Succeed())
	w.expectGone(ctx, g, instance)
	w.expectReason(ctx, g, machine, clusterv1.MachineInfrastructureReadyCondition, clusterv1.MachineInfrastructureDoesNotExistReason)
	d.expectStill(machine)
	g.Expect(d.live(g)).To(ConsistOf(machine), "live Machines")
	w.expectGone(ctx, g, instance)
}

func nodeDeleted(ctx context.Context, g Gomega, w *world) {
	d := w.newDeployment(ctx, g, "nodedeleted", 1, 0)
	machine := d.expectNodes(1)[0]
	w.expectReason(ctx, g, machine, clusterv1.MachineNodeHealthyCondition, clusterv1.MachineNodeHealthyReason)
	g.Expect(w.Delete(ctx, w.nodeOf(ctx, g, machine))).To(Succeed())
	w.expectReason(ctx, g, machine, clusterv1.MachineNodeHealthyCondition, clusterv1.MachineNodeDeletedReason)
}

func nodeLinked(ctx context.Context, g Gomega, w *world) {
	d := w.newDeployment(ctx, g, "linked", 1, 0)
	machine := d.expectNodes(1)[0]
	g.Eventually(func(g Gomega) {
		object := machineNamed(machine)
		g.Expect(w.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
		node := w.nodeOf(ctx, g, machine)
		g.Expect(node.Spec.ProviderID).To(Equal(object.Spec.ProviderID), "the provider ID of the Node")
		g.Expect(lo.ContainsBy(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.MatchTaint(&clusterv1.NodeUninitializedTaint) })).
			To(BeFalse(), "taint %s", clusterv1.NodeUninitializedTaint.Key)
	}).Should(Succeed())
}

func providerIDFollows(ctx context.Context, g Gomega, w *world) {
	d := w.newDeployment(ctx, g, "renamed", 1, never)
	machine := d.expectMachines(1)[0]
	expectID := func(id OmegaMatcher) {
		g.Eventually(func(g Gomega) {
			object := machineNamed(machine)
			g.Expect(w.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
			g.Expect(object.Spec.ProviderID).To(id, "the provider ID of the Machine")
		}).Should(Succeed())
	}
	expectID(Not(BeEmpty()))
	change(ctx, g, w, w.instance(ctx, g, machine), func(instance *infrav1.SimulatedMachine) { instance.Spec.ProviderID = "simulated://another" })
	expectID(Equal("simulated://another"))
}
