// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// MachineFinalizer keeps a SimulatedMachine until its simulated instance no longer exists.
const MachineFinalizer = "infrastructure.cluster.x-k8s.io/simulated-machine"

// BootstrapSucceeded is the condition of a SimulatedMachine whose bootstrap data is kubeadm's: whether it works.
const BootstrapSucceeded = "BootstrapSucceeded"

// SimulatedMachine is one simulated instance. It becomes a real Node in the workload cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=cluster-api,shortName=simm
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1alpha1"
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.metadata.labels['cluster\.x-k8s\.io/cluster-name']`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.instanceType`
// +kubebuilder:printcolumn:name="Zone",type=string,JSONPath=`.status.failureDomain`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.status.nodeName`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SimulatedMachine struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the instance.
	// +required
	Spec SimulatedMachineSpec `json:"spec,omitzero"`
	// status is what the provider reports.
	// +optional
	Status SimulatedMachineStatus `json:"status,omitempty,omitzero"`
}

// SimulatedMachineStatus is the reported state of a SimulatedMachine.
type SimulatedMachineStatus struct {
	// conditions holds Ready, Paused and BootstrapSucceeded.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization reports to Cluster API that the instance exists.
	// +optional
	Initialization SimulatedInitialization `json:"initialization,omitempty,omitzero"`

	// failureDomain is the zone that the instance is in.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	FailureDomain string `json:"failureDomain,omitempty"`

	// addresses of the instance.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Addresses []clusterv1.MachineAddress `json:"addresses,omitempty"`

	// startTime is when all prerequisites were met and the instance was requested. The delays begin here.
	// +optional
	StartTime *metav1.MicroTime `json:"startTime,omitempty"`

	// terminationTime is when the termination of the instance began.
	// +optional
	TerminationTime *metav1.MicroTime `json:"terminationTime,omitempty"`

	// nodeName is the Node that the instance registered. A kubelet registers once: the Node is never created again.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	NodeName string `json:"nodeName,omitempty"`
}

// GetConditions returns the conditions of the status.
func (m *SimulatedMachine) GetConditions() []metav1.Condition { return m.Status.Conditions }

// SetConditions replaces the conditions of the status.
func (m *SimulatedMachine) SetConditions(conditions []metav1.Condition) {
	m.Status.Conditions = conditions
}

// SimulatedMachineList is a list of SimulatedMachines.
//
// +kubebuilder:object:root=true
type SimulatedMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []SimulatedMachine `json:"items"`
}
