// SPDX-License-Identifier: Apache-2.0

package model

// MachineDeployment returns the replicas that a MachineDeployment gives to its one MachineSet,
// which has the given replicas and number of Machines in its status, including those that are being
// deleted (core/reconcilers/machinedeployment: planOnDelete and mdutil.NewMSNewReplicas).
//
// Lower replicas are passed on immediately. Higher ones are not: it adds the missing number to the
// larger of replicas and Machines. So, while deleted Machines still exist, it adds nothing if there
// are as many Machines as wanted, and otherwise the same small step in each reconciliation. With
// replicas 1, 10 Machines, and now 12 wanted: 1, 3, 5, 7, 9, 11, 12.
func MachineDeployment(replicas, machineSetReplicas, machineSetMachines int32) int32 {
	if replicas <= machineSetReplicas {
		return replicas
	}
	missing := replicas - max(machineSetReplicas, machineSetMachines)
	return machineSetReplicas + max(missing, 0)
}
