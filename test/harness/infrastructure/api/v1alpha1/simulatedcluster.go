// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// SimulatedCluster is the infrastructure of a Cluster whose machines are simulated. It is provisioned immediately.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1alpha1"
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.metadata.labels['cluster\.x-k8s\.io/cluster-name']`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SimulatedCluster struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the cluster's infrastructure.
	// +optional
	Spec SimulatedClusterSpec `json:"spec,omitempty,omitzero"`
	// status is what the provider reports.
	// +optional
	Status SimulatedClusterStatus `json:"status,omitempty,omitzero"`
}

// SimulatedClusterSpec is the desired state of a SimulatedCluster.
type SimulatedClusterSpec struct {
	// controlPlaneEndpoint is passed to the Cluster unchanged.
	// +optional
	ControlPlaneEndpoint clusterv1.APIEndpoint `json:"controlPlaneEndpoint,omitempty,omitzero"`

	// failureDomains are reported in the status unchanged, so that the Cluster shows them.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	FailureDomains []clusterv1.FailureDomain `json:"failureDomains,omitempty"`
}

// SimulatedClusterStatus is the reported state of a SimulatedCluster.
type SimulatedClusterStatus struct {
	// conditions holds Ready and Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization reports to Cluster API that the infrastructure exists.
	// +optional
	Initialization SimulatedInitialization `json:"initialization,omitempty,omitzero"`

	// failureDomains are those of the spec.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	FailureDomains []clusterv1.FailureDomain `json:"failureDomains,omitempty"`
}

// SimulatedInitialization is the part of a status that Cluster API waits for.
//
// +kubebuilder:validation:MinProperties=1
type SimulatedInitialization struct {
	// provisioned is true once the infrastructure exists; it never becomes false.
	// +optional
	Provisioned *bool `json:"provisioned,omitempty"`
}

// GetConditions returns the conditions of the status.
func (c *SimulatedCluster) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions replaces the conditions of the status.
func (c *SimulatedCluster) SetConditions(conditions []metav1.Condition) {
	c.Status.Conditions = conditions
}

// SimulatedClusterList is a list of SimulatedClusters.
//
// +kubebuilder:object:root=true
type SimulatedClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []SimulatedCluster `json:"items"`
}
