// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/connection"
)

const (
	// toGarbage is how long after the deletion of a Cluster Karpenter collects garbage.
	toGarbage = time.Minute
	// toClusterEnd is how long a Cluster exists at least after its deletion: that of its control plane takes minutes, and
	// longer than all outages of a run. A process that sees no Cluster leaves new claims to Karpenter, which gives up on
	// them after registrationTimeout.
	toClusterEnd = 10 * time.Minute
)

// deleteCluster deletes the Cluster, as a user does.
func deleteCluster(w *simulation) { w.delete(w.server.head["Cluster"][prod.Name]) }

// clusterEnds reports whether the Cluster is being deleted or no longer exists.
func (w *simulation) clusterEnds() bool {
	cluster, exists := w.server.head["Cluster"][prod.Name]
	return !exists || !cluster.GetDeletionTimestamp().IsZero()
}

// clusterExists reports whether the Cluster exists.
func (w *simulation) clusterExists() bool {
	_, exists := w.server.head["Cluster"][prod.Name]
	return exists
}

// endCluster is Cluster API's controller of the Cluster, while the Cluster is being deleted
// (core/reconcilers/cluster/cluster_controller.go, reconcileDelete).
func (w *simulation) endCluster() {
	cluster, exists := w.server.head["Cluster"][prod.Name]
	if !exists || !w.clusterEnds() {
		return
	}
	w.server.actor = "Cluster"
	left := len(w.server.head["MachineSet"]) + len(w.server.head["Machine"])
	for _, kind := range []string{"MachineDeployment", "MachinePool"} {
		left += len(w.server.head[kind])
		for _, name := range sortedNames(w.server.head[kind]) {
			w.delete(w.server.head[kind][name])
		}
	}
	since := w.clock.Since(cluster.GetDeletionTimestamp().Time)
	if left == 0 && since >= toClusterEnd {
		w.removeFinalizers(cluster)
	}
	if left == 0 && since >= toGarbage && !w.isOut(connection.Workload) {
		w.collectGarbage()
	}
}

// collectGarbage is Karpenter's controller nodeclaim.garbagecollection, which does not run: it deletes registered claims
// without a Machine. That happens if our process did not run while Cluster API deleted the Machine.
func (w *simulation) collectGarbage() {
	w.server.actor = "nodeclaim.garbagecollection"
	for _, claim := range w.claims() {
		if claim.DeletionTimestamp.IsZero() && claim.StatusConditions().Get(karpv1.ConditionTypeRegistered).IsTrue() {
			w.delete(claim)
		}
	}
}

// endDeployment is the controller of MachineDeployments for one that is being deleted.
func (w *simulation) endDeployment(deployment *clusterv1.MachineDeployment, set *clusterv1.MachineSet) {
	if set != nil {
		w.delete(set)
	} else {
		w.removeFinalizers(deployment)
	}
}

// endSet is the controller of MachineSets for one that is being deleted.
func (w *simulation) endSet(set *clusterv1.MachineSet, own []*clusterv1.Machine) {
	for _, machine := range own {
		w.deleteWithCluster(machine)
	}
	if len(own) == 0 {
		w.removeFinalizers(set)
	}
}

// endPool is the controller of MachinePools for one that is being deleted.
func (w *simulation) endPool(pool *clusterv1.MachinePool, group *unstructured.Unstructured) {
	if group != nil {
		w.delete(group)
	} else {
		w.removeFinalizers(pool)
	}
}

// endGroup is the infrastructure provider for a machine pool that is being deleted: Cluster API ends its Machines.
func (w *simulation) endGroup(group *unstructured.Unstructured, pool string) {
	instances := w.instancesOf(pool)
	for _, instance := range instances {
		if machine := w.machine(instance.GetName()); machine != nil {
			w.deleteWithCluster(machine)
		} else {
			w.delete(instance)
		}
	}
	if len(instances) == 0 {
		w.removeFinalizers(group)
	}
}

// deleteWithCluster deletes a Machine whose owner is being deleted, whether or not it serves a claim.
func (w *simulation) deleteWithCluster(m *clusterv1.Machine) {
	if m.DeletionTimestamp.IsZero() {
		w.ended[m.Name] = true
		w.delete(m)
	}
}

// delete deletes an object, if it still exists.
func (w *simulation) delete(object client.Object) {
	must(client.IgnoreNotFound(w.live().Delete(context.Background(), object)))
}

// removeFinalizers removes the finalizers of an object, if it still exists.
func (w *simulation) removeFinalizers(object client.Object) {
	if current, exists := w.server.head[kindOf(object)][object.GetName()]; exists {
		current = current.DeepCopyObject().(client.Object)
		current.SetFinalizers(nil)
		w.server.put(current)
	}
}
