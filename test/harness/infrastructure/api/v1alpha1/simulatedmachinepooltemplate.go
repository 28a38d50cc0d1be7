// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// SimulatedMachinePoolTemplate is the template of SimulatedMachinePools.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1alpha1"
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.template.spec.instanceType`
// +kubebuilder:printcolumn:name="CPU",type=string,JSONPath=`.spec.template.spec.capacity.cpu`
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.spec.template.spec.capacity.memory`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SimulatedMachinePoolTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec contains the template.
	// +required
	Spec SimulatedMachinePoolTemplateSpec `json:"spec,omitzero"`
}

// SimulatedMachinePoolTemplateSpec contains the template.
type SimulatedMachinePoolTemplateSpec struct {
	// template of the SimulatedMachinePools.
	// +required
	Template SimulatedMachinePoolTemplateResource `json:"template,omitzero"`
}

// SimulatedMachinePoolTemplateResource is the metadata and spec that SimulatedMachinePools start with.
type SimulatedMachinePoolTemplateResource struct {
	// metadata of the SimulatedMachinePools.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec of the SimulatedMachinePools.
	// +required
	Spec SimulatedMachinePoolSpec `json:"spec,omitzero"`
}

// SimulatedMachinePoolTemplateList is a list of SimulatedMachinePoolTemplates.
//
// +kubebuilder:object:root=true
type SimulatedMachinePoolTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []SimulatedMachinePoolTemplate `json:"items"`
}
