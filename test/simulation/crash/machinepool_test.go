// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"slices"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/internal/connection"
)

// machinePools is Cluster API's controller of MachinePools. It never acts on replicas: it creates a
// Machine for each instance, and copies what the infrastructure reports.
func (w *simulation) machinePools() {
	w.server.actor = "MachinePool"
	for _, name := range sortedNames(w.server.head["MachinePool"]) {
		pool := w.server.head["MachinePool"][name].DeepCopyObject().(*clusterv1.MachinePool)
		group := w.group(pool.Spec.Template.Spec.InfrastructureRef.Name)
		if !pool.DeletionTimestamp.IsZero() {
			w.endPool(pool, group)
			continue
		}
		pool.Status.ObservedGeneration, pool.Finalizers = pool.Generation, []string{clusterv1.MachinePoolFinalizer}
		w.server.put(pool)
		if group == nil {
			continue
		}
		group.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(pool, clusterv1.GroupVersion.WithKind("MachinePool"))})
		group.SetFinalizers([]string{infrastructureGroup + "/group"})
		group.SetLabels(lo.Assign(group.GetLabels(), map[string]string{clusterv1.ClusterNameLabel: prod.Name}))
		w.server.put(group)
		if kind, _, _ := unstructured.NestedString(group.Object, "status", "infrastructureMachineKind"); kind == "" {
			continue
		}
		for _, instance := range w.instancesOf(name) {
			w.machineFor(pool, instance)
		}
		ids, _, _ := unstructured.NestedStringSlice(group.Object, "spec", "providerIDList")
		if w.isOut(connection.Workload) {
			continue // Cluster API cannot see the Nodes
		}
		w.deleteRetiredNodes(pool.Spec.ProviderIDList, ids)
		pool.Spec.ProviderIDList = ids
		pool.Status.Replicas = lo.ToPtr(int32(len(w.instancesOf(name))))
		w.server.put(pool)
	}
}

// machineFor creates the Machine of an instance, or gives it the labels and annotations of the
// pool's template, as Cluster API does all the time, even if it is being deleted
// (core/reconcilers/machinepool/machinepool_controller_phases.go, createOrUpdateMachines).
func (w *simulation) machineFor(pool *clusterv1.MachinePool, instance *unstructured.Unstructured) {
	template := pool.Spec.Template
	labels := lo.Assign(template.Labels, map[string]string{clusterv1.MachinePoolNameLabel: pool.Name, clusterv1.ClusterNameLabel: prod.Name})
	machine := w.machine(instance.GetName())
	switch {
	case machine == nil && w.clock.Since(instance.GetCreationTimestamp().Time) < w.mode.slowness("Machine of "+instance.GetName()):
		// Providers report an instance after they have read from the cloud again.
	case machine == nil:
		w.server.put(&clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: prod.Namespace, Name: instance.GetName(), Labels: labels, Annotations: lo.Assign(template.Annotations),
				Finalizers:      []string{clusterv1.MachineFinalizer},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(pool, clusterv1.GroupVersion.WithKind("MachinePool"))},
			},
			Spec: clusterv1.MachineSpec{
				ClusterName: prod.Name, Bootstrap: clusterv1.Bootstrap{DataSecretName: lo.ToPtr("")},
				InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrastructureGroup, Kind: instanceKind, Name: instance.GetName()},
			},
		})
	case lacks(machine.Labels, labels) || lacks(machine.Annotations, template.Annotations):
		machine = machine.DeepCopy()
		machine.Labels, machine.Annotations = lo.Assign(machine.Labels, labels), lo.Assign(machine.Annotations, template.Annotations)
		w.server.put(machine)
	}
}

// deleteRetiredNodes deletes the Nodes whose provider ID is no longer in the pool, without draining
// them (machinepool_controller_noderef.go).
func (w *simulation) deleteRetiredNodes(before, after []string) {
	for _, name := range sortedNames(w.server.head["Node"]) {
		node := w.server.head["Node"][name].(*corev1.Node)
		if slices.Contains(before, node.Spec.ProviderID) && !slices.Contains(after, node.Spec.ProviderID) {
			must(w.live().Delete(context.Background(), node))
		}
	}
}

// poolMachines is Cluster API's controller of Machines, for those of MachinePools: a Machine
// reports the state of its instance. Its hooks block its deletion; then its instance is deleted,
// and the Machine with it.
func (w *simulation) poolMachines() {
	w.server.actor = "Machine"
	for _, machine := range w.machines() {
		instance := w.instance(machine.Name)
		switch {
		case machine.DeletionTimestamp.IsZero():
			if instance != nil {
				w.showInstance(machine, instance)
			}
		case machine.Status.NodeRef.IsDefined() && w.isOut(connection.Workload) && !w.clusterEnds():
			// Cluster API cannot drain the Node.
		case w.held(machine) || w.clock.Since(machine.DeletionTimestamp.Time) < toDrained+w.mode.slowness(machine.Name):
		case instance != nil:
			must(w.live().Delete(context.Background(), instance))
		default:
			w.end(machine)
		}
	}
}

// showInstance updates a Machine from its instance.
func (w *simulation) showInstance(m *clusterv1.Machine, instance *unstructured.Unstructured) {
	id := providerID(instance)
	if failed, _, _ := unstructured.NestedString(instance.Object, "status", "failed"); failed != "" {
		w.setInfrastructureReady(m, metav1.ConditionFalse, failed, "the infrastructure has no capacity for the machine")
		return
	}
	if id == "" {
		return
	}
	if m.Spec.ProviderID == "" {
		m = m.DeepCopy()
		m.Spec.ProviderID = id
		w.setInfrastructureReady(m, metav1.ConditionTrue, "Provisioned", "")
		return
	}
	if _, joined := w.server.head["Node"][m.Name]; joined && !w.isOut(connection.Workload) && !m.Status.NodeRef.IsDefined() {
		m = m.DeepCopy()
		m.Status.NodeRef.Name = m.Name
		w.server.put(m)
	}
}
