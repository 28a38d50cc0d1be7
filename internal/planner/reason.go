// SPDX-License-Identifier: Apache-2.0

package planner

// Reason is why a plan puts something off. It completes the sentence: replicas, a Machine or a claim
// stays as it is, because ...
type Reason string

const (
	// NoSpareMachine keeps a claim waiting.
	NoSpareMachine Reason = "no spare Machine exists yet"
	// LoweringInProgress keeps a claim waiting, and replicas as they are.
	LoweringInProgress Reason = "the MachineSet has not acted on lower replicas, and may delete any Machine without a Node"
	// RequestedNotCreated prevents replicas from being lowered, and an expired spare Machine from being marked.
	RequestedNotCreated Reason = "requested Machines have not appeared yet"
	// OthersCouldBeDeleted prevents the replicas of a blocked MachineSet from being lowered.
	OthersCouldBeDeleted Reason = "with lower replicas the MachineSet could delete a Machine without a Node that is not marked"
	// MachineSetBehind keeps a marked Machine, or replicas of a MachineDeployment with several MachineSets.
	MachineSetBehind Reason = "a MachineSet has not acted on its replicas"
	// DeploymentBehind keeps a marked Machine.
	DeploymentBehind Reason = "the MachineDeployment controller has not acted on its replicas"
	// StillCounted keeps a marked Machine.
	StillCounted Reason = "replicas still count it, so it would be replaced"
	// InfrastructureNotReady prevents the replicas of a MachinePool from being raised.
	InfrastructureNotReady Reason = "the infrastructure cannot create Machines yet"
	// ReplicasNotSeen prevents the replicas of a MachinePool from being lowered, and keeps a marked Machine.
	ReplicasNotSeen Reason = "the infrastructure provider may not have seen the last change of replicas"
	// NotSettled prevents the replicas of a MachinePool from being lowered, and keeps a marked Machine.
	NotSettled Reason = "the infrastructure provider may not have recovered from the last disturbance of the management cluster"
	// MarkNotSeen keeps a marked Machine of a MachinePool.
	MarkNotSeen Reason = "the infrastructure provider may not have seen that it is marked"
)
