// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

// hold and keep are hooks that keep an instance until they are removed from its Machine.
const (
	hold = clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/test"
	keep = clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/keep"
)

var _ = Describe("machine pools of the simulated infrastructure", func() {
	It("replace deleted instances, and remove annotated ones", func(ctx SpecContext) {
		pool := env.createPool(ctx, 3, infrav1.PoolBehavior{})
		machines := env.poolMachines(ctx, pool, 3)

		By("deleting a Machine without a change of replicas")
		Expect(env.client.Delete(ctx, &machines[0])).To(Succeed())
		Eventually(func(g Gomega) {
			now := env.machinesOfPool(ctx, pool)
			g.Expect(uids(now)).NotTo(ContainElement(machines[0].UID))
			g.Expect(now).To(HaveLen(3))
		}).Should(Succeed())
		machines = env.poolMachines(ctx, pool, 3)

		By("holding and annotating a Machine, and lowering replicas")
		chosen, others := &machines[1], uids([]clusterv1.Machine{machines[0], machines[2]})
		env.change(ctx, chosen, func() {
			metav1.SetMetaDataAnnotation(&chosen.ObjectMeta, hold, "")
			metav1.SetMetaDataAnnotation(&chosen.ObjectMeta, clusterv1.DeleteMachineAnnotation, "")
		})
		env.change(ctx, pool, func() { pool.Spec.Replicas = lo.ToPtr[int32](2) })
		Eventually(func(g Gomega) {
			g.Expect(env.client.Get(ctx, client.ObjectKeyFromObject(chosen), chosen)).To(Succeed())
			g.Expect(chosen.DeletionTimestamp).NotTo(BeNil())
		}).Should(Succeed())
		env.caughtUp(ctx, pool.Name)
		Expect(env.machinesOfPool(ctx, pool)).To(HaveLen(3))

		By("removing the hook")
		env.change(ctx, chosen, func() { delete(chosen.Annotations, hold) })
		Eventually(func() any { return uids(env.machinesOfPool(ctx, pool)) }).Should(ConsistOf(others))
		env.caughtUp(ctx, pool.Name)
		Expect(uids(env.machinesOfPool(ctx, pool))).To(ConsistOf(others))

		env.deletePool(ctx, pool)
	})

	It("get the template's annotations again on a Machine that is being deleted", func(ctx SpecContext) {
		pool := env.createPool(ctx, 1, infrav1.PoolBehavior{})
		machine := &env.poolMachines(ctx, pool, 1)[0]
		env.change(ctx, pool, func() { pool.Spec.Template.Annotations = map[string]string{hold: ""} })
		held := func(g Gomega) {
			g.Expect(env.client.Get(ctx, client.ObjectKeyFromObject(machine), machine)).To(Succeed())
			g.Expect(machine.Annotations).To(HaveKey(hold))
		}
		Eventually(held).Should(Succeed())
		// Otherwise the deletion can be faster than what follows.
		env.change(ctx, machine, func() { machine.Annotations[keep] = "" })
		Expect(env.client.Delete(ctx, machine)).To(Succeed())

		// This is why the operator does not hold the Machines of a pool with its template.
		env.change(ctx, machine, func() { delete(machine.Annotations, hold) })
		env.change(ctx, pool, func() { metav1.SetMetaDataAnnotation(&pool.ObjectMeta, "test", "trigger a reconcile") })
		Eventually(held).Should(Succeed())

		env.change(ctx, pool, func() { pool.Spec.Template.Annotations = nil })
		// When its instance no longer exists, the Machine no longer follows the template: the hook stays until it is
		// removed.
		Eventually(func(g Gomega) {
			err := env.client.Get(ctx, client.ObjectKeyFromObject(machine), machine)
			if err == nil && (metav1.HasAnnotation(machine.ObjectMeta, hold) || metav1.HasAnnotation(machine.ObjectMeta, keep)) {
				delete(machine.Annotations, hold)
				delete(machine.Annotations, keep)
				err = env.client.Update(ctx, machine)
			}
			g.Expect(apierrors.IsNotFound(err)).To(BeTrue())
		}).Should(Succeed())
		env.poolMachines(ctx, pool, 1)
		env.deletePool(ctx, pool)
	})

	It("can have no Machines", func(ctx SpecContext) {
		pool := env.createPool(ctx, 2, infrav1.PoolBehavior{WithoutMachines: true})
		Eventually(func(g Gomega) {
			g.Expect(env.client.Get(ctx, client.ObjectKeyFromObject(pool), pool)).To(Succeed())
			g.Expect(pool.Status.NodeRefs).To(HaveLen(2))
		}).Should(Succeed())
		Expect(env.machinesOfPool(ctx, pool)).To(BeEmpty())
		env.change(ctx, pool, func() { pool.Spec.Replicas = lo.ToPtr[int32](0) })
		Eventually(func() any { return env.nodesOfPool(ctx, pool) }).Should(BeEmpty())
		env.deletePool(ctx, pool)
	})
})

// createPool creates a MachinePool of the served Cluster and its SimulatedMachinePool.
func (e *environment) createPool(ctx context.Context, replicas int32, behavior infrav1.PoolBehavior) *clusterv1.MachinePool {
	GinkgoHelper()
	meta := metav1.ObjectMeta{Namespace: served.Namespace, Name: "pool-" + rand.String(5), Labels: map[string]string{clusterv1.ClusterNameLabel: served.Name}}
	infra := &infrav1.SimulatedMachinePool{ObjectMeta: *meta.DeepCopy(), Spec: infrav1.SimulatedMachinePoolSpec{
		SimulatedMachineSpec: infrav1.SimulatedMachineSpec{NodeLabels: map[string]string{"pool": meta.Name}},
		Behavior:             behavior,
	}}
	pool := &clusterv1.MachinePool{ObjectMeta: meta, Spec: clusterv1.MachinePoolSpec{
		ClusterName: served.Name,
		Replicas:    &replicas,
		Template: clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{
			ClusterName:       served.Name,
			Bootstrap:         clusterv1.Bootstrap{DataSecretName: lo.ToPtr("none")},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "SimulatedMachinePool", Name: meta.Name},
		}},
	}}
	Expect(e.client.Create(ctx, infra)).To(Succeed())
	Expect(e.client.Create(ctx, pool)).To(Succeed())
	return pool
}

// deletePool deletes a MachinePool and waits until nothing of it is left.
func (e *environment) deletePool(ctx context.Context, pool *clusterv1.MachinePool) {
	GinkgoHelper()
	Expect(e.client.Delete(ctx, pool)).To(Succeed())
	Eventually(func(g Gomega) {
		g.Expect(client.IgnoreNotFound(e.client.Get(ctx, client.ObjectKeyFromObject(pool), pool))).To(Succeed())
		g.Expect(e.machinesOfPool(ctx, pool)).To(BeEmpty())
		infra := &infrav1.SimulatedMachinePool{}
		g.Expect(e.client.Get(ctx, client.ObjectKeyFromObject(pool), infra)).NotTo(Succeed())
		g.Expect(e.nodesOfPool(ctx, pool)).To(BeEmpty())
	}).Should(Succeed())
}

// poolMachines waits until a pool has a number of Machines with Nodes, and returns them.
func (e *environment) poolMachines(ctx context.Context, pool *clusterv1.MachinePool, count int) []clusterv1.Machine {
	GinkgoHelper()
	var machines []clusterv1.Machine
	Eventually(func(g Gomega) {
		machines = e.machinesOfPool(ctx, pool)
		g.Expect(machines).To(HaveLen(count))
		for i := range machines {
			g.Expect(machines[i].Status.NodeRef.IsDefined()).To(BeTrue())
		}
		g.Expect(e.client.Get(ctx, client.ObjectKeyFromObject(pool), pool)).To(Succeed())
		g.Expect(pool.Spec.ProviderIDList).To(HaveLen(count))
		g.Expect(lo.FromPtr(pool.Status.Replicas)).To(BeEquivalentTo(count))
	}).Should(Succeed())
	return machines
}

func (e *environment) machinesOfPool(ctx context.Context, pool *clusterv1.MachinePool) []clusterv1.Machine {
	GinkgoHelper()
	machines := &clusterv1.MachineList{}
	Expect(e.client.List(ctx, machines, client.InNamespace(pool.Namespace), client.MatchingLabels{clusterv1.MachinePoolNameLabel: pool.Name})).To(Succeed())
	return machines.Items
}

func (e *environment) nodesOfPool(ctx context.Context, pool *clusterv1.MachinePool) []string {
	GinkgoHelper()
	nodes := &corev1.NodeList{}
	Expect(e.client.List(ctx, nodes, client.MatchingLabels{"pool": pool.Name})).To(Succeed())
	return lo.Map(nodes.Items, func(node corev1.Node, _ int) string { return node.Name })
}
