// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// endingOf returns the Machines of a MachineDeployment that are deleted with their MachineSet. While a
// MachineDeployment or MachineSet is being deleted, its controller only deletes what it owns, and creates
// nothing (Cluster API: core/reconcilers/machinedeployment/machinedeployment_controller.go and
// core/reconcilers/machineset/machineset_controller.go, reconcileDelete). Kubernetes' garbage collector does
// the same in another order.
func endingOf(deployment *clusterv1.MachineDeployment, machineSets []clusterv1.MachineSet, machines map[string]*clusterv1.Machine) map[string]bool {
	deleted := sets.New[string]()
	for i := range machineSets {
		if !machineSets[i].DeletionTimestamp.IsZero() {
			deleted.Insert(machineSets[i].Name)
		}
	}
	ending := map[string]bool{}
	for name, machine := range machines {
		owner := metav1.GetControllerOfNoCopy(machine)
		if !deployment.DeletionTimestamp.IsZero() || owner != nil && deleted.Has(owner.Name) {
			ending[name] = true
		}
	}
	return ending
}
