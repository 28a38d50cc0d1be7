// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// SimulatedMachineTemplate is the template of SimulatedMachines.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1alpha1"
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.template.spec.instanceType`
// +kubebuilder:printcolumn:name="CPU",type=string,JSONPath=`.spec.template.spec.capacity.cpu`
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.spec.template.spec.capacity.memory`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SimulatedMachineTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec contains the template.
	// +required
	Spec SimulatedMachineTemplateSpec `json:"spec,omitzero"`
	// status is what the provider reports.
	// +optional
	Status SimulatedMachineTemplateStatus `json:"status,omitempty,omitzero"`
}

// SimulatedMachineTemplateSpec contains the template.
type SimulatedMachineTemplateSpec struct {
	// template of the SimulatedMachines.
	// +required
	Template SimulatedMachineTemplateResource `json:"template,omitzero"`
}

// SimulatedMachineTemplateResource is the metadata and spec that SimulatedMachines start with.
type SimulatedMachineTemplateResource struct {
	// metadata of the SimulatedMachines.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec of the SimulatedMachines.
	// +required
	Spec SimulatedMachineSpec `json:"spec,omitzero"`
}

// SimulatedMachineTemplateStatus reports to an autoscaler what a machine of this template offers.
type SimulatedMachineTemplateStatus struct {
	// capacity of a machine of this template.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// nodeInfo of a machine of this template.
	// +optional
	NodeInfo NodeInfo `json:"nodeInfo,omitempty,omitzero"`
}

// NodeInfo is what an autoscaler needs to know about a Node in addition to its capacity.
//
// +kubebuilder:validation:MinProperties=1
type NodeInfo struct {
	// architecture is the CPU architecture.
	// +optional
	Architecture Architecture `json:"architecture,omitempty"`

	// operatingSystem is the operating system.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	OperatingSystem string `json:"operatingSystem,omitempty"`
}

// SimulatedMachineTemplateList is a list of SimulatedMachineTemplates.
//
// +kubebuilder:object:root=true
type SimulatedMachineTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []SimulatedMachineTemplate `json:"items"`
}
