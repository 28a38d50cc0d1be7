// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// SimulatedClusterTemplate is the template of a SimulatedCluster, for a ClusterClass.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1alpha1"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SimulatedClusterTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec contains the template.
	// +required
	Spec SimulatedClusterTemplateSpec `json:"spec,omitzero"`
}

// SimulatedClusterTemplateSpec contains the template.
type SimulatedClusterTemplateSpec struct {
	// template of the SimulatedCluster.
	// +required
	Template SimulatedClusterTemplateResource `json:"template,omitzero"`
}

// SimulatedClusterTemplateResource is the metadata and spec that a SimulatedCluster starts with.
type SimulatedClusterTemplateResource struct {
	// metadata of the SimulatedCluster.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec of the SimulatedCluster.
	// +optional
	Spec SimulatedClusterSpec `json:"spec,omitempty,omitzero"`
}

// SimulatedClusterTemplateList is a list of SimulatedClusterTemplates.
//
// +kubebuilder:object:root=true
type SimulatedClusterTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []SimulatedClusterTemplate `json:"items"`
}
