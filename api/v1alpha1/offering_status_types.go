// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LimitedOffering tells how much of an offering's limit is used.
type LimitedOffering struct {
	// instanceType of the offering.
	// +required
	// +kubebuilder:validation:MaxLength=63
	InstanceType string `json:"instanceType"`

	// zone of the offering.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Zone string `json:"zone,omitempty"`

	// capacityType of the offering.
	// +required
	// +kubebuilder:validation:MaxLength=63
	CapacityType string `json:"capacityType"`

	// nodeClaims is the number of NodeClaims of this offering; for a reservation, of
	// all offerings with its id.
	// +required
	NodeClaims int32 `json:"nodeClaims"`

	// limit is how many there may be.
	// +required
	Limit int32 `json:"limit"`
}

// InvalidOfferings are offerings that cannot be made for the same reason.
type InvalidOfferings struct {
	// reason is PatchesFailed or TemplatesRejected.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Reason string `json:"reason"`

	// message says what to correct, cut to 512 bytes.
	// +required
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message"`

	// count is how many offerings these are.
	// +required
	Count int32 `json:"count"`

	// examples are some of them, each with its instance type, zone and capacity type.
	// Example: m5.large/us-east-1a/spot.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:items:MaxLength=256
	Examples []string `json:"examples"`
}

// ObservedCapacity is what Nodes of one instance type report. Of several Nodes, it is the
// least that at least four of five have, within 5 percent: with fewer than five Nodes the
// least of all. It follows the Nodes that exist. When none exists, it stays as it was, if
// more than one Node has reported it.
type ObservedCapacity struct {
	// instanceType of the Nodes.
	// +required
	// +kubebuilder:validation:MaxLength=63
	InstanceType string `json:"instanceType"`

	// revision is the hash of the part of the template's spec that the Nodes were
	// made from. What was learned of another revision is forgotten.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Revision string `json:"revision"`

	// nodes is how many Nodes have reported this: 1, or 2 for two and more. It is 0 once
	// the only one no longer exists. Karpenter then plans with the declared capacity, until
	// a second Node reports the same.
	// +optional
	Nodes int32 `json:"nodes"`

	// capacity in the Nodes' status.
	// +required
	Capacity corev1.ResourceList `json:"capacity"`

	// allocatable in the Nodes' status.
	// +required
	Allocatable corev1.ResourceList `json:"allocatable"`
}

// UnavailableOffering tells why an offering is not to be had, and for how long.
type UnavailableOffering struct {
	// instanceType of the offering.
	// +required
	// +kubebuilder:validation:MaxLength=63
	InstanceType string `json:"instanceType"`

	// zone of the offering.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Zone string `json:"zone,omitempty"`

	// capacityType of the offering.
	// +required
	// +kubebuilder:validation:MaxLength=63
	CapacityType string `json:"capacityType"`

	// reason is InsufficientCapacity, QuotaExceeded, MachineFailed or LaunchTimeout.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Reason string `json:"reason"`

	// message is what the infrastructure said, cut to 256 bytes. It is left out where
	// very many offerings are unavailable.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`

	// failures is how many times in a row it failed; each doubles the time for which
	// it is left alone, from 3 minutes to at most 30.
	// +required
	Failures int32 `json:"failures"`

	// until is when it can be chosen again.
	// +required
	Until metav1.Time `json:"until"`
}
