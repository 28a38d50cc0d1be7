// SPDX-License-Identifier: Apache-2.0

//go:build contract

package contract

import (
	"context"
	"slices"

	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/test/harness/model"
)

func leavingMachinesCount(ctx context.Context, g Gomega, w *world) {
	d := w.newDeployment(ctx, g, "leaving", 3, never)
	names := d.expectMachines(3)
	held := names[2]
	d.deleteHeld(held)
	d.expectStill(names...)
	d.expectLeft(2, names[:2]...)
	d.expectStill(names...)
	w.release(ctx, g, held, terminateHookName)
	w.expectGone(ctx, g, machineNamed(held))
	d.expectStill(names[:2]...)
}

func replacedWhenGone(ctx context.Context, g Gomega, w *world) {
	d := w.newDeployment(ctx, g, "replaced", 2, never)
	names := d.expectMachines(2)
	d.deleteHeld(names[0])
	d.expectStill(names...)
	w.release(ctx, g, names[0], terminateHookName)
	w.expectGone(ctx, g, machineNamed(names[0]))
	g.Expect(d.expectMachines(2)).To(ContainElement(names[1]))
}

// deleteHeld deletes a Machine, which a hook keeps.
func (d *deployment) deleteHeld(name string) {
	d.annotate(d.ctx, d.g, name, terminateHookName)
	d.g.Expect(d.Delete(d.ctx, machineNamed(name))).To(Succeed())
	d.expectReason(d.ctx, d.g, name, clusterv1.MachineDeletingCondition, clusterv1.MachineDeletingWaitingForPreTerminateHookReason)
}

func markedFirst(ctx context.Context, g Gomega, w *world) {
	d := w.newDeployment(ctx, g, "marked", 1, 0)
	old := d.expectNodes(1)
	d.setJoin(never)
	d.scale(3)
	names := d.expectMachines(3)
	w.annotate(ctx, g, old[0], clusterv1.DeleteMachineAnnotation)
	d.expectLeft(2, lo.Without(names, old...)...)
}

func withoutNodeNext(ctx context.Context, g Gomega, w *world) {
	d := w.newDeployment(ctx, g, "nodeless", 1, never)
	booting := d.expectMachines(1)
	d.setJoin(0)
	d.scale(3)
	var names []string
	g.Eventually(func(g Gomega) {
		machines := d.machines(g)
		g.Expect(machines).To(HaveLen(3), "Machines")
		names = named(lo.Filter(machines, func(m clusterv1.Machine, _ int) bool { return m.Status.NodeRef.IsDefined() }))
		g.Expect(names).To(HaveLen(2), "Machines with Nodes")
	}).Should(Succeed())
	g.Expect(names).NotTo(ContainElement(booting[0]))
	d.expectLeft(2, names...)
}

func newestWithNode(ctx context.Context, g Gomega, w *world) {
	d := w.newDeployment(ctx, g, "newest", 1, 0)
	oldest := d.expectNodes(1)
	// Times of creation are whole seconds, and a Machine has its Node later than that.
	d.scale(2)
	second := lo.Without(d.expectNodes(2), oldest...)
	d.scale(3)
	d.expectNodes(3)
	d.expectLeft(2, oldest[0], second[0])
	d.expectMachines(2)
	d.expectLeft(1, oldest[0])
}

func equalWithoutNode(ctx context.Context, g Gomega, w *world) {
	d := w.newDeployment(ctx, g, "equal", 2, never)
	d.expectMachines(2)
	d.scale(4)
	names := d.expectMachines(4)
	slices.Sort(names)
	d.expectLeft(2, names[2:]...)
}

func observedAfterActing(ctx context.Context, g Gomega, w *world) {
	d := w.newDeployment(ctx, g, "observed", 1, never)
	d.expectMachines(1)
	for _, replicas := range []int32{4, 2, 3, 0} {
		d.scale(replicas)
		d.g.Eventually(func(g Gomega) {
			set := d.set(g)
			g.Expect(lo.FromPtr(set.Spec.Replicas)).To(Equal(replicas), "replicas of the MachineSet")
			g.Expect(set.Status.ObservedGeneration).To(Equal(set.Generation), "the observed generation of the MachineSet")
		}).WithPolling(poll / 10).Should(Succeed())
		// Raised replicas count Machines that are being deleted, which were deleted with the replicas before.
		g.Expect(len(d.all(g))).To(BeNumerically(">=", int(replicas)), "Machines with %d replicas", replicas)
		g.Expect(len(d.live(g))).To(BeNumerically("<=", int(replicas)), "live Machines with %d replicas", replicas)
		d.expectMachines(int(replicas))
	}
}

func raisedInSteps(ctx context.Context, g Gomega, w *world) {
	const leaving, wanted = 4, 6
	d := w.newDeployment(ctx, g, "steps", leaving, never)
	for _, name := range d.expectMachines(leaving) {
		w.annotate(ctx, g, name, terminateHookName)
	}
	d.scale(0)
	d.expectActed(0)
	given := d.watchReplicas()
	d.scale(wanted)
	var want, got []int32
	for replicas := int32(0); replicas < wanted; {
		// The MachineSet counts a Machine that it creates.
		replicas = model.MachineDeployment(wanted, replicas, leaving+max(0, replicas-leaving))
		want = append(want, replicas)
	}
	g.Eventually(func() int32 {
		got = given(got)
		return lo.LastOrEmpty(got)
	}).Should(BeEquivalentTo(wanted), "replicas of the MachineSet")
	g.Expect(got).To(Equal(want), "the replicas that the MachineDeployment gave to its MachineSet")
	for _, name := range d.all(g) {
		w.release(ctx, g, name, terminateHookName)
	}
}

// watchReplicas returns a function that adds to a list the replicas of the MachineSet that are new since then.
func (d *deployment) watchReplicas() func([]int32) []int32 {
	watch, err := d.Watch(d.ctx, &clusterv1.MachineSetList{}, d.ofDeployment()...)
	d.g.Expect(err).NotTo(HaveOccurred())
	before := lo.FromPtr(d.set(d.g).Spec.Replicas)
	return func(list []int32) []int32 {
		for {
			select {
			case event := <-watch.ResultChan():
				set, is := event.Object.(*clusterv1.MachineSet)
				d.g.Expect(is).To(BeTrue(), "the watch has ended: %v", event)
				if now := lo.FromPtr(set.Spec.Replicas); now != before {
					before = now
					list = append(list, now)
				}
			default:
				return list
			}
		}
	}
}

func passedOnStays(ctx context.Context, g Gomega, w *world) {
	d := w.newDeployment(ctx, g, "passedon", 3, never)
	names := d.expectMachines(3)
	for _, name := range names {
		w.annotate(ctx, g, name, terminateHookName)
	}
	d.scale(0)
	d.expectActed(0)
	d.scale(5)
	g.Eventually(func(g Gomega) {
		object := d.read(g)
		g.Expect(object.Status.ObservedGeneration).To(Equal(object.Generation), "the observed generation of the MachineDeployment")
	}).Should(Succeed())
	given := d.watchReplicas()
	set := d.set(g)
	change(ctx, g, w, set, func(set *clusterv1.MachineSet) { set.Spec.Replicas = lo.ToPtr[int32](5) })
	d.expectActed(5)
	g.Expect(d.live(g)).To(HaveLen(2), "live Machines")
	g.Consistently(func(g Gomega) { g.Expect(slices.Max(append(given(nil), 5))).To(BeEquivalentTo(5)) }).Should(Succeed())
	g.Expect(lo.FromPtr(d.set(g).Spec.Replicas)).To(BeEquivalentTo(5), "replicas of the MachineSet")
	for _, name := range names {
		w.release(ctx, g, name, terminateHookName)
	}
	d.expectMachines(5)
}

func deletedSetCreatesNothing(ctx context.Context, g Gomega, w *world) {
	d := w.newDeployment(ctx, g, "deletedset", 2, never)
	names := d.expectMachines(2)
	w.annotate(ctx, g, names[0], terminateHookName)
	deleted := d.set(g)
	g.Expect(w.Delete(ctx, deleted)).To(Succeed())
	w.expectGone(ctx, g, machineNamed(names[1]))
	d.expectReason(ctx, g, names[0], clusterv1.MachineDeletingCondition, clusterv1.MachineDeletingWaitingForPreTerminateHookReason)
	g.Consistently(func(g Gomega) {
		g.Expect(d.all(g)).To(ConsistOf(names[0]), "Machines")
		g.Expect(d.set(g).UID).To(Equal(deleted.UID), "the only MachineSet")
	}).Should(Succeed())
	w.release(ctx, g, names[0], terminateHookName)
	w.expectGone(ctx, g, machineNamed(names[0]))
	d.expectMachines(2)
	g.Expect(d.set(g).UID).NotTo(Equal(deleted.UID), "the next MachineSet")
}

func deletedDeploymentCreatesNothing(ctx context.Context, g Gomega, w *world) {
	d := w.newDeployment(ctx, g, "deleteddeployment", 2, never)
	names := d.expectMachines(2)
	w.annotate(ctx, g, names[0], terminateHookName)
	object := d.read(g)
	g.Expect(w.Delete(ctx, object)).To(Succeed())
	w.expectGone(ctx, g, machineNamed(names[1]))
	d.expectStill(names[0])
	w.release(ctx, g, names[0], terminateHookName)
	w.expectGone(ctx, g, object)
	g.Expect(d.all(g)).To(BeEmpty(), "Machines")
}

// objectKey is the key of an object in the namespace.
func objectKey(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: name}
}
