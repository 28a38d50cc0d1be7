// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// setEnding sets which Machines of a MachineDeployment are deleted with their MachineSet. While a
// MachineDeployment or MachineSet is being deleted, its controller only deletes what it owns, and creates
// nothing (Cluster API: core/reconcilers/machinedeployment/machinedeployment_controller.go and
// core/reconcilers/machineset/machineset_controller.go, reconcileDelete). Kubernetes' garbage collector does
// the same in another order.
func (s *Snapshot) setEnding(deployment *clusterv1.MachineDeployment, machineSets []clusterv1.MachineSet) {
	deleted := sets.New[string]()
	for i := range machineSets {
		if !machineSets[i].DeletionTimestamp.IsZero() {
			deleted.Insert(machineSets[i].Name)
		}
	}
	for i := range s.State.Machines {
		read := &s.State.Machines[i]
		read.Ending = !deployment.DeletionTimestamp.IsZero() || deleted.Has(read.Set)
	}
}
