// SPDX-License-Identifier: Apache-2.0

//go:build contract

package contract

import (
	"context"
	"time"

	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// pool is a MachinePool as the operator generates it, with its infrastructure.
type pool struct {
	*world
	ctx  context.Context
	g    Gomega
	name string
}

// newPool creates a MachinePool whose Machines get Nodes after a time.
func (w *world) newPool(ctx context.Context, g Gomega, name string, replicas int32, join time.Duration) *pool {
	p := &pool{world: w, ctx: ctx, g: g, name: name}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: stack.ClusterName}}
	infrastructure := &infrav1.SimulatedMachinePool{ObjectMeta: meta}
	infrastructure.Spec.SimulatedMachineSpec = machineSpec(join)
	for _, object := range []client.Object{infrastructure, &clusterv1.MachinePool{
		ObjectMeta: meta,
		Spec: clusterv1.MachinePoolSpec{
			ClusterName: stack.ClusterName, Replicas: &replicas,
			Template: clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{
				ClusterName: stack.ClusterName,
				Version:     version,
				Bootstrap:   clusterv1.Bootstrap{DataSecretName: lo.ToPtr(stack.BootstrapSecretName)},
				InfrastructureRef: clusterv1.ContractVersionedObjectReference{
					APIGroup: infrav1.GroupVersion.Group, Kind: "SimulatedMachinePool", Name: name,
				},
			}},
		},
	}} {
		g.Expect(w.Create(ctx, object)).To(Succeed())
	}
	return p
}

// change changes the MachinePool.
func (p *pool) change(changes func(*clusterv1.MachinePool)) {
	change(p.ctx, p.g, p.world, &clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: p.name}}, changes)
}

// machines returns the Machines by name.
func (p *pool) machines(g Gomega) []clusterv1.Machine {
	list := &clusterv1.MachineList{}
	g.Expect(p.List(p.ctx, list, client.InNamespace(namespace), client.MatchingLabels{clusterv1.MachinePoolNameLabel: p.name})).To(Succeed())
	return list.Items
}

// expectMachines waits until each instance has a Machine, on which Cluster API has acted.
func (p *pool) expectMachines(count int) []clusterv1.Machine {
	var machines []clusterv1.Machine
	p.g.Eventually(func(g Gomega) {
		machines = p.machines(g)
		g.Expect(machines).To(HaveLen(count), "Machines")
		for i := range machines {
			g.Expect(machines[i].DeletionTimestamp).To(BeNil(), "the deletion of Machine %s", machines[i].Name)
			// Without the finalizer, a Machine no longer exists as soon as it is deleted, and the next one has the same name.
			g.Expect(machines[i].Finalizers).To(ContainElement(clusterv1.MachineFinalizer), "finalizers of Machine %s", machines[i].Name)
			p.instance(p.ctx, g, machines[i].Name)
		}
	}).Should(Succeed())
	return machines
}

func poolMachines(ctx context.Context, g Gomega, w *world) {
	p := w.newPool(ctx, g, "pool", 2, never)
	machines := p.expectMachines(2)
	pool := &clusterv1.MachinePool{}
	g.Expect(w.Get(ctx, objectKey(p.name), pool)).To(Succeed())
	for i := range machines {
		g.Expect(machines[i].Name).To(Equal(machines[i].Spec.InfrastructureRef.Name), "the name of the infrastructure machine")
		g.Expect(metav1.IsControlledBy(&machines[i], pool)).To(BeTrue(), "the MachinePool of Machine %s", machines[i].Name)
	}
	p.change(func(pool *clusterv1.MachinePool) { pool.Spec.Replicas = lo.ToPtr[int32](3) })
	g.Expect(named(p.expectMachines(3))).To(ContainElements(lo.ToAnySlice(named(machines))...))
}

func poolTerminateHook(ctx context.Context, g Gomega, w *world) {
	p := w.newPool(ctx, g, "heldpool", 1, never)
	w.expectHeld(ctx, g, p.expectMachines(1)[0].Name, terminateHookName, clusterv1.MachineDeletingWaitingForPreTerminateHookReason)
	p.expectMachines(1)
}

func poolChangedInPlace(ctx context.Context, g Gomega, w *world) {
	p := w.newPool(ctx, g, "inplacepool", 1, never)
	names := named(p.expectMachines(1))
	p.change(func(pool *clusterv1.MachinePool) {
		pool.Spec.Template.Labels = map[string]string{"team": "a"}
		pool.Spec.Template.Annotations = map[string]string{"example.com/note": "b"}
	})
	g.Eventually(func(g Gomega) {
		machines := p.machines(g)
		g.Expect(named(machines)).To(Equal(names), "Machines")
		g.Expect(machines[0].Labels).To(HaveKeyWithValue("team", "a"))
		g.Expect(machines[0].Annotations).To(HaveKeyWithValue("example.com/note", "b"))
	}).Should(Succeed())
}

func poolNodeDeleted(ctx context.Context, g Gomega, w *world) {
	p := w.newPool(ctx, g, "listedpool", 2, 0)
	machine := p.expectMachines(2)[0].Name
	g.Eventually(func(g Gomega) {
		pool := &clusterv1.MachinePool{}
		g.Expect(w.Get(ctx, objectKey(p.name), pool)).To(Succeed())
		g.Expect(pool.Status.NodeRefs).To(HaveLen(2), "the Nodes of the MachinePool")
		object := machineNamed(machine)
		g.Expect(w.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
		g.Expect(object.Status.NodeRef.Name).NotTo(BeEmpty(), "the Node of the Machine")
	}).Should(Succeed())
	node := w.nodeOf(ctx, g, machine)
	// The Machine cannot delete the Node. The instance ends by itself.
	w.annotate(ctx, g, machine, drainHookName)
	g.Expect(w.Delete(ctx, w.instance(ctx, g, machine))).To(Succeed())
	w.expectGone(ctx, g, node)
	w.release(ctx, g, machine, drainHookName)
	w.expectGone(ctx, g, machineNamed(machine))
}
