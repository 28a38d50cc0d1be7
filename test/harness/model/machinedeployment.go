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

// Set is what a MachineDeployment reads from one of its MachineSets.
type Set struct {
	// Replicas in its spec, and Machines in its status, including those that are being deleted.
	Replicas, Machines int32
}

// MachineDeploymentOnDelete returns the replicas that a MachineDeployment with the strategy
// OnDelete gives to its MachineSets in one reconciliation: those of the current MachineSet, and
// those of the older ones, which are passed with the oldest first
// (core/reconcilers/machinedeployment: planOnDelete and mdutil.NewMSNewReplicas).
//
// Surplus replicas are removed from the oldest MachineSet first, whichever Machine is marked.
// Missing replicas are added to the current one.
func MachineDeploymentOnDelete(replicas int32, current Set, older []Set) (newCurrent int32, newOlder []int32) {
	sum, all := current.Replicas, max(current.Replicas, current.Machines)
	for _, set := range older {
		newOlder = append(newOlder, set.Replicas)
		sum += set.Replicas
		all += max(set.Replicas, set.Machines)
	}
	newCurrent = current.Replicas
	switch {
	case newCurrent > replicas:
		newCurrent = replicas
	case newCurrent < replicas && all < replicas:
		newCurrent += replicas - all
	}
	tooMany := max(sum-current.Replicas+newCurrent-replicas, 0)
	for i, set := range older {
		if missing := set.Replicas - set.Machines; missing > 0 {
			newOlder[i] -= missing
			tooMany -= missing
		}
	}
	for i := range newOlder {
		if tooMany <= 0 {
			break
		}
		fewer := min(newOlder[i], tooMany)
		if fewer > 0 {
			// It reads the spec: the missing number is forgotten until the next reconciliation.
			newOlder[i] = max(older[i].Replicas-fewer, 0)
		}
		tooMany -= fewer
	}
	return newCurrent, newOlder
}
