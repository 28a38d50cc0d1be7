// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// SimulatedControlPlane represents a control plane that another system runs, such as a managed Kubernetes service. It
// is initialized immediately and marked as externally managed, so that Cluster API drains and deletes Nodes although no
// control plane Machine exists. It names no version, so no version skew is checked.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1alpha1"
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.metadata.labels['cluster\.x-k8s\.io/cluster-name']`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SimulatedControlPlane struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the control plane.
	// +optional
	Spec SimulatedControlPlaneSpec `json:"spec,omitempty,omitzero"`
	// status is what the provider reports.
	// +optional
	Status SimulatedControlPlaneStatus `json:"status,omitempty,omitzero"`
}

// SimulatedControlPlaneSpec is the desired state of a SimulatedControlPlane.
type SimulatedControlPlaneSpec struct {
	// controlPlaneEndpoint is passed to the Cluster unchanged.
	// +optional
	ControlPlaneEndpoint clusterv1.APIEndpoint `json:"controlPlaneEndpoint,omitempty,omitzero"`

	// version is the Kubernetes version that the control plane should have. With a version,
	// Cluster API runs its preflight checks before it creates Machines.
	// Default: none, and no preflight checks. Example: v1.36.3.
	// +optional
	Version string `json:"version,omitempty"`

	// runningVersion is the version that status.version reports. If it is lower than
	// version, the control plane is being upgraded, and Cluster API creates no Machines.
	// Default: version. Example: v1.35.0.
	// +optional
	RunningVersion string `json:"runningVersion,omitempty"`
}

// SimulatedControlPlaneStatus is the reported state of a SimulatedControlPlane.
type SimulatedControlPlaneStatus struct {
	// conditions holds Available and Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization reports to Cluster API that the control plane exists.
	// +optional
	Initialization SimulatedControlPlaneInitialization `json:"initialization,omitempty,omitzero"`

	// version is the Kubernetes version that the control plane has.
	// +optional
	Version string `json:"version,omitempty"`

	// externalManagedControlPlane is true: no control plane Machines and Nodes exist.
	// +optional
	ExternalManagedControlPlane *bool `json:"externalManagedControlPlane,omitempty"`
}

// SimulatedControlPlaneInitialization is the part of the status that Cluster API waits for.
//
// +kubebuilder:validation:MinProperties=1
type SimulatedControlPlaneInitialization struct {
	// controlPlaneInitialized is true once the control plane serves its API; it never becomes false.
	// +optional
	ControlPlaneInitialized *bool `json:"controlPlaneInitialized,omitempty"`
}

// GetConditions returns the conditions of the status.
func (c *SimulatedControlPlane) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions replaces the conditions of the status.
func (c *SimulatedControlPlane) SetConditions(conditions []metav1.Condition) {
	c.Status.Conditions = conditions
}

// SimulatedControlPlaneList is a list of SimulatedControlPlanes.
//
// +kubebuilder:object:root=true
type SimulatedControlPlaneList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []SimulatedControlPlane `json:"items"`
}
