// SPDX-License-Identifier: Apache-2.0

package planner

// Reason is why a plan puts something off. It completes the sentence: replicas, a Machine or a claim
// stays as it is, because ...
type Reason string

const (
	// LimitIsReached keeps a claim without a Machine.
	LimitIsReached Reason = "the limit of the template, of the offering or of its reservation is reached"
	// ClusterIsDeleting keeps replicas from being raised.
	ClusterIsDeleting Reason = "the Cluster is being deleted, so no Machines are requested"
	// ControlledByOthers keeps everything as it is.
	ControlledByOthers Reason = "Cluster API rolls out the resource, or another controller sets its replicas"
	// NoSpareMachine keeps a claim waiting.
	NoSpareMachine Reason = "no spare Machine exists yet"
	// LoweringInProgress keeps a claim waiting, and replicas as they are.
	LoweringInProgress Reason = "the MachineSet has not acted on lower replicas, and may delete any Machine without a Node"
	// RequestedNotCreated prevents replicas from being lowered, and an expired spare Machine from being marked.
	RequestedNotCreated Reason = "requested Machines have not appeared yet"
	// OthersCouldBeDeleted prevents the replicas of a blocked MachineSet from being lowered.
	OthersCouldBeDeleted Reason = "with lower replicas the MachineSet could delete a Machine without a Node that is not marked"
	// MachineSetBehind keeps a marked Machine.
	MachineSetBehind Reason = "a MachineSet has not acted on its replicas"
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

// These are why a Machine is marked for deletion or unlinked.
const (
	// HasFailed is a Machine that never becomes a Node.
	HasFailed Reason = "it has failed"
	// TookTooLong is a Machine without a provider ID after launchTimeoutSeconds.
	TookTooLong Reason = "it has not become a Node within launchTimeoutSeconds"
	// InstanceIsGone is a Machine that never becomes a Node.
	InstanceIsGone Reason = "its instance or its infrastructure object no longer exists"
	// HadPods is a Machine whose claim ends.
	HadPods Reason = "it has a Node, and Pods of its NodeClaim may run there"
	// SpareTTLEnds is a Machine that no claim has needed. It is also when the Machine is due.
	SpareTTLEnds Reason = "no NodeClaim has needed it for spareTTLSeconds"
	// GivenUp is a Machine whose claim was deleted when only its Node was missing.
	GivenUp Reason = "its NodeClaim was deleted when only its Node was missing"
	// IsLeaving is a Machine that is being deleted or marked for deletion already.
	IsLeaving Reason = "it is being deleted or marked for deletion"
	// ClaimIsGone is a Machine that becomes spare.
	ClaimIsGone Reason = "its NodeClaim no longer exists"
	// ClaimHasAnother is a Machine that becomes spare.
	ClaimHasAnother Reason = "its NodeClaim has another Machine"
)

// These are why time alone changes a plan, like some of the above.
const (
	// MayStall is when a controller must have acted on an object.
	MayStall Reason = "nothing may act on it"
	// MayBeSlow is when a claim reports what its Machine waits for.
	MayBeSlow Reason = "its Machine or its Node may take longer than usual"
	// MayResume is when a stalled launch is looked at again.
	MayResume Reason = "its launch may go on"
	// LaunchTimeoutEnds is when a launch fails.
	LaunchTimeoutEnds Reason = "launchTimeoutSeconds ends"
	// ProbeIsDue is when replicas count leaving Machines again.
	ProbeIsDue Reason = "the MachineSet may no longer be blocked"
)
