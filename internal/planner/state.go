// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-capi/karpenter-capi/internal/failure"
)

// State is one scalable resource with its claims and Machines, as it was read at one time. It has what was found and no
// decisions.
type State struct {
	// Now is the time of the state.
	Now time.Time
	// UpSince is the time since which both clusters have been reachable; years before Now if they always were. No timer of a
	// launch runs before.
	UpSince time.Time
	// Durations that the template and the operator have.
	Durations Durations
	// ClusterDeleting reports whether the Cluster is being deleted. Then no Machines are requested.
	ClusterDeleting bool
	// Suspended reports whether nothing is decided about the resource, because Cluster API rolls it out or another controller
	// sets its replicas.
	Suspended bool

	// Kind and Name of the resource, for messages. Key also has its namespace.
	Kind, Name, Key string
	// Exists reports whether there is a resource of that name.
	Exists bool
	// Hash of what the resource was generated from; empty if that is not known.
	Hash string
	// Template is the name of the resource's template.
	Template string
	// Replicas that the resource has now.
	Replicas int32
	// ResumedAt is when Cluster API resumed work on the paused resource; zero if that is not known.
	ResumedAt time.Time
	// Unmanaged is the number of unmanaged Machines, which the resource had when it was adopted and
	// which serve no claims. A generated resource has none.
	Unmanaged int32
	// UnmanagedUntil is the creation time of the youngest Machine that the resource had when it was
	// adopted. The operator never changes Machines that are not younger. It is zero for a generated
	// resource.
	UnmanagedUntil time.Time
	// Scaling is how replicas become Machines; nil is the zero MachineSet.
	Scaling Scaling
	// Stall is why Cluster API creates no Machines; zero if it creates them.
	Stall Stall
	// ProgressedAt is when a Machine of any of the operator's resources last progressed, as far as that is known.
	ProgressedAt time.Time
	// Problem is what Cluster API or a provider reports about Machines that are to be created, to be appended to a
	// sentence; empty if they report nothing.
	Problem string
	// Unusable is why the resource cannot provide Machines at all; empty if it can.
	Unusable string

	// Claims that name this resource, including those that are being deleted.
	Claims []Claim
	// Open has the name of the Machine of each claim whose link is being written.
	Open map[types.UID]string
	// Machines of this resource, including those that are being deleted.
	Machines []Machine
}

// Unsettled reports whether the provider of a MachinePool may not have recovered from a disturbance of the management cluster.
func (s *State) Unsettled() bool {
	pool, isPool := s.Scaling.(Pool)
	return isPool && pool.unsettled(s.Now)
}

// Durations are how long the planner waits. Those of launches are the template's.
type Durations struct {
	// LaunchTimeout is how long a Machine may take to get a provider ID, and SpareTTL how long a Machine without a claim
	// is kept.
	LaunchTimeout, SpareTTL time.Duration
	// NoProgress is how long nothing may act on an object before its launch is stalled.
	NoProgress time.Duration
	// Settle is the time after which an infrastructure provider of MachinePools must have seen a write.
	Settle time.Duration
	// ReadyPoll is the interval at which an infrastructure that cannot create Machines is looked at.
	ReadyPoll time.Duration
	// Probe is the time after which lowered replicas count leaving Machines again.
	Probe time.Duration
}

// Claim is what the planner needs to know of a NodeClaim.
type Claim struct {
	// UID and Name identify the claim.
	UID  types.UID
	Name string
	// Created is the claim's creation timestamp.
	Created time.Time
	// ProviderID in the claim's status, provisional or real.
	ProviderID string
	// Hash of what the claim's Machine is generated from; empty for claims of adopted resources.
	Hash string
	// NeedsMachine reports whether the claim is launched, is not being deleted, and no Node has registered for it.
	NeedsMachine bool
	// Leaving reports whether the claim is being deleted, and DeletedAt since when.
	Leaving   bool
	DeletedAt time.Time
	// RegistersSince is the time from which core waits for its Node.
	RegistersSince time.Time
	// OverLimit reports whether the limits of the template, of the offering and of its reservation leave no machine for the
	// claim. A claim that has a Machine keeps it, also if a limit was lowered since.
	OverLimit bool
	// Available is the condition MachineAvailable, Ready the condition MachineReady, and Registered reports whether core has
	// registered its Node.
	Available, Ready Condition
	Registered       bool
	// Stalled reports whether the claim has the condition that its launch is stalled.
	Stalled bool
	// Rejected is why no resource could be created or scaled for the claim, as its condition has it; empty if that was not
	// rejected.
	Rejected string
	// WaitsSince is when the conditions of the launch last changed.
	WaitsSince time.Time
	// ResumedAt is when its launch went on after a stall; zero if it was not stalled last.
	ResumedAt time.Time
}

// Machine is what the planner needs to know of a Machine.
type Machine struct {
	// Name identifies the Machine.
	Name string
	// Created is the Machine's creation timestamp, in whole seconds.
	Created time.Time
	// Claim is the UID of the claim in the Machine's link; empty without a link.
	Claim types.UID
	// ProviderID of the Machine; empty until the infrastructure has set it.
	ProviderID string
	// Deleting reports whether the Machine is being deleted, Leaving whether it is that or marked for deletion, and
	// LeavingSince since when.
	Deleting     bool
	Leaving      bool
	LeavingSince time.Time
	// Node is the name of its Node; empty if it has none. HasNode reports whether Pods may run on it.
	Node    string
	HasNode bool
	// Ending reports whether the Machine is deleted with its MachineSet or MachineDeployment, so that nothing
	// replaces it.
	Ending bool
	// WasLinked reports whether the Machine has the time since which it is spare, and SpareSince is that time, or else that
	// of its creation.
	WasLinked  bool
	SpareSince time.Time
	// Marked reports whether a leaving Machine is marked for deletion, and Hooked whether a hook keeps its instance.
	Marked, Hooked bool
	// InstanceGone reports whether its instance no longer exists or, if the Machine of a pool is leaving, is being deleted. A
	// Machine that is not leaving never becomes a Node then. A Machine of a MachineSet has lost its infrastructure object
	// before that was provisioned.
	InstanceGone bool
	// ResumedAt is when Cluster API resumed work on the paused Machine; zero if that is not known.
	ResumedAt time.Time
	// Failure is why the Machine has failed for good; zero while it may become a Node.
	Failure failure.Failure
	// Stall is why nothing acts on the Machine; zero if a controller does, or it is too young for that.
	Stall Stall
	// Bootstrap and Infrastructure are what they report, and Provider is what a provider of contract v1beta1 reports.
	Bootstrap, Infrastructure, Provider Condition
	// Untouched reports whether Cluster API has not acted on the Machine yet.
	Untouched bool
	// ProvisionedAt is when the infrastructure last reported something else; zero if it has reported nothing.
	ProvisionedAt time.Time
}

// Condition is what Cluster API or a provider reports; zero if it reports nothing. The time of its transition follows its
// status.
type Condition struct {
	Status          metav1.ConditionStatus
	Reason, Message string
}

// problem returns the problem that a condition reports, to be appended to a sentence; empty if it reports none.
func (c Condition) problem() string {
	if c.Status == metav1.ConditionTrue {
		return ""
	}
	return c.String()
}

// String returns the reason and the message, to be appended to a sentence.
func (c Condition) String() string {
	if c.Message == "" {
		return ""
	}
	return ": " + c.Reason + ": " + c.Message
}

// Stall is why Cluster API or a provider does nothing for a claim. What was not tried is no evidence
// against an offering, so the claim waits. The zero Stall is none.
type Stall struct {
	// Reason is v1alpha1.ReasonBlocked or v1alpha1.ReasonNoProgress.
	Reason string
	// Message repeats what Cluster API reports, or names the object that nothing acts on.
	Message string
	// Silent reports whether only the missing action shows the stall. Then the controllers may be busy with other resources.
	Silent bool
}
