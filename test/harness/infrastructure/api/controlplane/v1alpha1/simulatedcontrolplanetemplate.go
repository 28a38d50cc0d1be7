// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// SimulatedControlPlaneTemplate is the template of a SimulatedControlPlane, for a ClusterClass.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1alpha1"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SimulatedControlPlaneTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec contains the template.
	// +required
	Spec SimulatedControlPlaneTemplateSpec `json:"spec,omitzero"`
}

// SimulatedControlPlaneTemplateSpec contains the template.
type SimulatedControlPlaneTemplateSpec struct {
	// template of the SimulatedControlPlane.
	// +required
	Template SimulatedControlPlaneTemplateResource `json:"template,omitzero"`
}

// SimulatedControlPlaneTemplateResource is the metadata and spec that a SimulatedControlPlane starts with.
type SimulatedControlPlaneTemplateResource struct {
	// metadata of the SimulatedControlPlane.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec of the SimulatedControlPlane.
	// +optional
	Spec SimulatedControlPlaneSpec `json:"spec,omitempty,omitzero"`
}

// SimulatedControlPlaneTemplateList is a list of SimulatedControlPlaneTemplates.
//
// +kubebuilder:object:root=true
type SimulatedControlPlaneTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []SimulatedControlPlaneTemplate `json:"items"`
}
