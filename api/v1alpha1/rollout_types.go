// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Rollout limits when outdated Nodes of a template are replaced.
//
// +kubebuilder:validation:MinProperties=1
type Rollout struct {
	// canary is how many of the outdated Nodes are replaced first: a number from 1 to 50, or
	// a percentage of the outdated Nodes, rounded up, with which at most 50 are replaced
	// first. Default: 1. Example: 5%.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]?|100)%$`
	// +kubebuilder:validation:XValidation:rule="type(self) == string || int(self) >= 1 && int(self) <= 50",message="canary must be a number from 1 to 50, or a percentage from 1% to 100%"
	Canary *intstr.IntOrString `json:"canary,omitempty"`

	// soakSeconds is for how many seconds the first new Nodes are observed before the other
	// outdated Nodes are replaced. It begins when the first outdated Nodes have ended and a
	// new Node is ready. At most 31536000. Default: 600. Example: 3600.
	// +optional
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	SoakSeconds *int32 `json:"soakSeconds,omitempty"`

	// progressDeadlineSeconds is for how many seconds a new Node can be not ready, or not
	// initialized after it has registered. Then the rollout stops. At most 31536000.
	// Default: 600. Example: 900.
	// +optional
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`

	// paused reports whether no further outdated Node is replaced. New NodeClaims still get
	// what the template has now. Default: false.
	// +optional
	Paused *bool `json:"paused,omitempty"`
}

const (
	// DefaultSoak is the default of rollout.soakSeconds.
	DefaultSoak = 10 * time.Minute
	// DefaultProgressDeadline is the default of rollout.progressDeadlineSeconds.
	DefaultProgressDeadline = 10 * time.Minute
)

// RolloutStep is how far a rollout is.
// +kubebuilder:validation:Enum=Canary;Soaking;Rolling;Complete;Stopped
type RolloutStep string

const (
	// RolloutCanary replaces the first outdated Nodes.
	RolloutCanary RolloutStep = "Canary"
	// RolloutSoaking replaces none, and observes the new Nodes.
	RolloutSoaking RolloutStep = "Soaking"
	// RolloutRolling replaces all outdated Nodes within the disruption budgets.
	RolloutRolling RolloutStep = "Rolling"
	// RolloutComplete is when no Node is outdated.
	RolloutComplete RolloutStep = "Complete"
	// RolloutStopped replaces none, because a new Node has failed.
	RolloutStopped RolloutStep = "Stopped"
)

// RolloutStatus is how far a rollout is. It is written once for each step.
type RolloutStatus struct {
	// step is Canary, Soaking, Rolling, Complete or Stopped.
	// +required
	Step RolloutStep `json:"step,omitempty"`

	// revision identifies what the rollout replaces Nodes with. Another revision begins
	// another rollout.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Revision string `json:"revision,omitempty"`

	// startTime is when the rollout began. Nodes of NodeClaims that were created since are
	// its new Nodes.
	// +required
	StartTime metav1.Time `json:"startTime"`

	// lastTransitionTime is when the step began.
	// +required
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`

	// canary are the NodeClaims that are replaced first: the oldest outdated ones.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	Canary []RolloutNodeClaim `json:"canary,omitempty"`

	// message describes why the rollout has stopped.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`

	// history has the revisions of the last two complete rollouts, the latest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	History []RolloutRevision `json:"history,omitempty"`
}

// RolloutNodeClaim identifies a NodeClaim.
type RolloutNodeClaim struct {
	// name of the NodeClaim.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// uid of the NodeClaim.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	UID string `json:"uid,omitempty"`
}

// RolloutRevision is what all Nodes of a template ran when a rollout was complete.
type RolloutRevision struct {
	// revision identifies it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Revision string `json:"revision,omitempty"`

	// spec is the part of the template's spec that a rollback restores: version, bootstrap
	// and infrastructureRef of template.spec, patches, kubelet and scalableResource.kind. It
	// is left out if it is larger than 4 KiB, or the template follows a MachineDeployment.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec *runtime.RawExtension `json:"spec,omitempty"`
}
