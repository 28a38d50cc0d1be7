// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// SimulatedConfig is the bootstrap configuration of a Machine. Its data is in a Secret that exists already, because a
// simulated machine does not use it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1alpha1"
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.metadata.labels['cluster\.x-k8s\.io/cluster-name']`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SimulatedConfig struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the configuration.
	// +required
	Spec SimulatedConfigSpec `json:"spec,omitzero"`
	// status is what the provider reports.
	// +optional
	Status SimulatedConfigStatus `json:"status,omitempty,omitzero"`
}

// SimulatedConfigSpec is the configuration of a SimulatedConfig.
type SimulatedConfigSpec struct {
	// dataSecretName is the name of the Secret with the bootstrap data.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	DataSecretName string `json:"dataSecretName,omitempty"`
}

// SimulatedConfigStatus is the reported state of a SimulatedConfig.
type SimulatedConfigStatus struct {
	// conditions holds Ready and Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization reports to Cluster API that the bootstrap data exists.
	// +optional
	Initialization SimulatedConfigInitialization `json:"initialization,omitempty,omitzero"`

	// dataSecretName is that of the spec.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	DataSecretName string `json:"dataSecretName,omitempty"`
}

// SimulatedConfigInitialization is the part of the status that Cluster API waits for.
//
// +kubebuilder:validation:MinProperties=1
type SimulatedConfigInitialization struct {
	// dataSecretCreated is true once the data exists; it never becomes false.
	// +optional
	DataSecretCreated *bool `json:"dataSecretCreated,omitempty"`
}

// GetConditions returns the conditions of the status.
func (c *SimulatedConfig) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions replaces the conditions of the status.
func (c *SimulatedConfig) SetConditions(conditions []metav1.Condition) {
	c.Status.Conditions = conditions
}

// SimulatedConfigList is a list of SimulatedConfigs.
//
// +kubebuilder:object:root=true
type SimulatedConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []SimulatedConfig `json:"items"`
}

// SimulatedConfigTemplate is the template of SimulatedConfigs.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1alpha1"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SimulatedConfigTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec contains the template.
	// +required
	Spec SimulatedConfigTemplateSpec `json:"spec,omitzero"`
}

// SimulatedConfigTemplateSpec contains the template.
type SimulatedConfigTemplateSpec struct {
	// template of the SimulatedConfigs.
	// +required
	Template SimulatedConfigTemplateResource `json:"template,omitzero"`
}

// SimulatedConfigTemplateResource is the metadata and spec that SimulatedConfigs start with.
type SimulatedConfigTemplateResource struct {
	// metadata of the SimulatedConfigs.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec of the SimulatedConfigs.
	// +required
	Spec SimulatedConfigSpec `json:"spec,omitzero"`
}

// SimulatedConfigTemplateList is a list of SimulatedConfigTemplates.
//
// +kubebuilder:object:root=true
type SimulatedConfigTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []SimulatedConfigTemplate `json:"items"`
}
