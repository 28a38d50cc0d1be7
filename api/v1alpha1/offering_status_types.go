// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LimitedOffering shows how much of an offering's limit is used.
type LimitedOffering struct {
	// instanceType of the offering.
	// +required
	// +kubebuilder:validation:MaxLength=63
	InstanceType string `json:"instanceType"`

	// zone of the offering.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Zone string `json:"zone,omitempty"`

	// capacityType of the offering.
	// +required
	// +kubebuilder:validation:MaxLength=63
	CapacityType string `json:"capacityType"`

	// nodeClaims is the number of NodeClaims of this offering. For a reservation, it is
	// the number for all offerings with its id. If the limit is that of an
	// InstanceTypeCatalog or of a reservation, it includes NodeClaims of other templates.
	// +required
	NodeClaims int32 `json:"nodeClaims"`

	// limit is how many NodeClaims there can be. With capacityFrom, it is nodeClaims and
	// what is left of the capacity that was counted.
	// +required
	Limit int32 `json:"limit"`

	// message describes which capacity is used up, if capacityFrom of the offering counts it.
	// It is cut to 256 bytes.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
}

// InvalidOfferings are offerings that cannot be created for the same reason.
type InvalidOfferings struct {
	// reason is one of the reasons of conditions, such as PatchesFailed, TemplatesRejected,
	// NameTaken or ReferenceNotFound.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Reason string `json:"reason"`

	// message describes what to correct, cut to 512 bytes.
	// +required
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message"`

	// count is the number of these offerings.
	// +required
	Count int32 `json:"count"`

	// examples are some of these offerings, each with its instance type, zone and
	// capacity type.
	// Example: m5.large/us-east-1a/spot.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:items:MaxLength=256
	Examples []string `json:"examples"`
}

// ObservedCapacity is what Nodes of one instance type report. It is the smallest reported
// value, without values that are more than 5 percent below what at least four of five
// Nodes have. With fewer than five Nodes, it is the smallest reported value. It follows
// the Nodes that exist. When none exists any more, it stays as it was if more than one
// Node has reported it.
type ObservedCapacity struct {
	// instanceType of the Nodes.
	// +required
	// +kubebuilder:validation:MaxLength=63
	InstanceType string `json:"instanceType"`

	// revision is the hash of the part of the template's spec from which the Nodes were
	// created. What was learned from another revision is discarded.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Revision string `json:"revision"`

	// nodes is how many Nodes have reported this: 1, or 2 for two and more. It is 0 when
	// the only one no longer exists. Karpenter then plans with the declared capacity,
	// until a second Node reports the same.
	// +optional
	Nodes int32 `json:"nodes"`

	// capacity is what the Nodes report in status.capacity.
	// +required
	Capacity corev1.ResourceList `json:"capacity"`

	// allocatable is what the Nodes report in status.allocatable.
	// +required
	Allocatable corev1.ResourceList `json:"allocatable"`

	// volumeAttachmentLimits are how many volumes of each CSI driver can be attached, as the
	// CSINodes of the Nodes report it. Drivers without a limit are left out.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	VolumeAttachmentLimits map[string]int32 `json:"volumeAttachmentLimits,omitempty"`
}

// UnavailableOffering shows why an offering is unavailable, and until when.
type UnavailableOffering struct {
	// instanceType of the offering.
	// +required
	// +kubebuilder:validation:MaxLength=63
	InstanceType string `json:"instanceType"`

	// zone of the offering.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Zone string `json:"zone,omitempty"`

	// capacityType of the offering.
	// +required
	// +kubebuilder:validation:MaxLength=63
	CapacityType string `json:"capacityType"`

	// reason is InsufficientCapacity, QuotaExceeded, MachineFailed, LaunchTimeout,
	// ScalableResourceUnusable or Interrupted.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Reason string `json:"reason"`

	// message is what the infrastructure or a termination handler reported, cut to 256 bytes. It is left out if
	// very many offerings are unavailable.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`

	// failures is how many times in a row the offering has failed or was interrupted. Each
	// time doubles the time for which it is unavailable, from 3 minutes to at most 30 minutes.
	// +required
	Failures int32 `json:"failures"`

	// until is when Karpenter can choose the offering again.
	// +required
	Until metav1.Time `json:"until"`
}
