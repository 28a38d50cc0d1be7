// SPDX-License-Identifier: Apache-2.0

//go:build contract

package contract

import (
	"context"

	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

func onDeleteKeepsMachines(ctx context.Context, g Gomega, w *world) {
	d := w.newDeployment(ctx, g, "changed", 2, never)
	names := d.expectMachines(2)
	// The MachineDeployment would replace Machines that the status of the MachineSet lacks.
	g.Eventually(func(g Gomega) { g.Expect(lo.FromPtr(d.set(g).Status.Replicas)).To(BeEquivalentTo(2)) }).Should(Succeed())
	current := d.set(g)
	d.change(func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.FailureDomain = "another" })
	g.Eventually(func(g Gomega) {
		sets := d.sets(g)
		g.Expect(sets).To(HaveLen(2), "MachineSets")
		older, _ := lo.Find(sets, func(set clusterv1.MachineSet) bool { return set.UID == current.UID })
		g.Expect(older.Annotations).To(HaveKeyWithValue(clusterv1.DisableMachineCreateAnnotation, "true"), "annotations of the older MachineSet")
	}).Should(Succeed())
	d.expectStill(names...)
	d.change(func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.FailureDomain = "" })
	g.Eventually(func(g Gomega) {
		g.Expect(w.Get(ctx, client.ObjectKeyFromObject(current), current)).To(Succeed())
		g.Expect(current.Annotations[clusterv1.DisableMachineCreateAnnotation]).NotTo(Equal("true"), "the annotation of the current MachineSet")
	}).Should(Succeed())
	d.scale(3)
	g.Expect(d.expectMachines(3)).To(ContainElements(lo.ToAnySlice(names)...))
	for _, machine := range d.machines(g) {
		g.Expect(metav1.IsControlledBy(&machine, current)).To(BeTrue(), "the MachineSet of Machine %s", machine.Name)
	}
}

func changedInPlace(ctx context.Context, g Gomega, w *world) {
	d := w.newDeployment(ctx, g, "inplace", 1, never)
	names := d.expectMachines(1)
	d.change(func(d *clusterv1.MachineDeployment) {
		template := &d.Spec.Template
		template.Labels["team"] = "a"
		template.Annotations = map[string]string{"example.com/note": "b"}
		template.Spec.MinReadySeconds = lo.ToPtr[int32](7)
		template.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "Checked"}}
		template.Spec.Deletion = clusterv1.MachineDeletionSpec{
			NodeDrainTimeoutSeconds: lo.ToPtr[int32](8), NodeVolumeDetachTimeoutSeconds: lo.ToPtr[int32](9), NodeDeletionTimeoutSeconds: lo.ToPtr[int32](11),
		}
	})
	g.Eventually(func(g Gomega) {
		machines := d.machines(g)
		g.Expect(named(machines)).To(Equal(names), "Machines")
		machine, want := machines[0], d.read(g).Spec.Template
		g.Expect(machine.Labels).To(HaveKeyWithValue("team", "a"))
		g.Expect(machine.Annotations).To(HaveKeyWithValue("example.com/note", "b"))
		g.Expect(machine.Spec.MinReadySeconds).To(Equal(want.Spec.MinReadySeconds), "minReadySeconds")
		g.Expect(machine.Spec.ReadinessGates).To(Equal(want.Spec.ReadinessGates), "readinessGates")
		g.Expect(machine.Spec.Deletion).To(Equal(want.Spec.Deletion), "deletion")
	}).Should(Succeed())
	d.set(g)
}

func acceptedUnchanged(ctx context.Context, g Gomega, w *world) {
	d := w.newDeployment(ctx, g, "unchanged", 0, never)
	got, want := d.read(g), d.object()
	selector := map[string]string{clusterv1.MachineDeploymentNameLabel: d.name, clusterv1.ClusterNameLabel: stack.ClusterName}
	g.Expect(got.Finalizers).To(Equal(want.Finalizers), "finalizers")
	// Cluster API's controller adds what is no concern of a webhook: it records the revision.
	g.Expect(lo.OmitByKeys(got.Annotations, []string{clusterv1.RevisionAnnotation})).To(BeEmpty(), "annotations")
	g.Expect(lo.OmitByKeys(got.Labels, []string{clusterv1.ClusterNameLabel})).To(BeEmpty(), "labels")
	g.Expect(got.Spec.Selector.MatchLabels).To(Equal(selector), "the selector")
	g.Expect(got.Spec.Template.Labels).To(Equal(selector), "labels of Machines")
	g.Expect(got.Spec.Template.Annotations).To(BeEmpty(), "annotations of Machines")
}

func pausedDeployment(ctx context.Context, g Gomega, w *world) {
	d := w.newDeployment(ctx, g, "paused", 1, never)
	names := d.expectMachines(1)
	d.change(func(d *clusterv1.MachineDeployment) {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, clusterv1.PausedAnnotation, "")
	})
	expectPaused := func(paused bool) {
		g.Eventually(func(g Gomega) {
			g.Expect(meta.IsStatusConditionTrue(d.read(g).Status.Conditions, clusterv1.PausedCondition)).To(Equal(paused), "condition Paused is True")
		}).Should(Succeed())
	}
	expectPaused(true)
	d.scale(2)
	g.Consistently(func(g Gomega) { g.Expect(lo.FromPtr(d.set(g).Spec.Replicas)).To(BeEquivalentTo(1)) }).Should(Succeed())
	d.expectStill(names...)
	d.change(func(d *clusterv1.MachineDeployment) { delete(d.Annotations, clusterv1.PausedAnnotation) })
	expectPaused(false)
	d.expectMachines(2)
}

func pausedCluster(ctx context.Context, g Gomega, w *world) {
	const name = "pausing"
	in := w.newCluster(ctx, g, name, "")
	d := w.newDeployment(ctx, g, name, 2, never, in)
	names := d.expectMachines(2)
	pause := func(paused bool) {
		cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		change(ctx, g, w, cluster, func(c *clusterv1.Cluster) { c.Spec.Paused = &paused })
	}
	pause(true)
	g.Eventually(func(g Gomega) {
		for _, machine := range d.machines(g) {
			g.Expect(meta.IsStatusConditionTrue(machine.Status.Conditions, clusterv1.PausedCondition)).To(BeTrue(), "condition Paused of Machine %s", machine.Name)
		}
	}).Should(Succeed())
	g.Expect(w.Delete(ctx, machineNamed(names[0]))).To(Succeed())
	d.scale(3)
	d.expectStill(names...)
	pause(false)
	w.expectGone(ctx, g, machineNamed(names[0]))
	d.expectMachines(3)
}
