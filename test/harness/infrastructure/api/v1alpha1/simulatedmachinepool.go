// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MachinePoolFinalizer keeps a SimulatedMachinePool until none of its instances exists.
const MachinePoolFinalizer = "infrastructure.cluster.x-k8s.io/simulated-machine-pool"

// SimulatedMachinePool is a group of simulated instances. Each of them is a SimulatedMachine.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=cluster-api,shortName=simmp
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1alpha1"
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.metadata.labels['cluster\.x-k8s\.io/cluster-name']`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.instanceType`
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.status.replicas`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SimulatedMachinePool struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the instances.
	// +required
	Spec SimulatedMachinePoolSpec `json:"spec,omitzero"`
	// status is what the provider reports.
	// +optional
	Status SimulatedMachinePoolStatus `json:"status,omitempty,omitzero"`
}

// SimulatedMachinePoolSpec is the desired state of a group of instances. The MachinePool has the number of replicas.
type SimulatedMachinePoolSpec struct {
	// Each instance gets this spec, with a zone of the MachinePool's failureDomains if it has any. The providerID is
	// unused: the group has none.
	SimulatedMachineSpec `json:",inline"`

	// providerIDList is set by the provider: the provider IDs of all existing instances, including those that are being
	// deleted.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	ProviderIDList []string `json:"providerIDList,omitempty"`

	// behavior makes the pool behave like that of another provider. Without it, the pool replaces each instance that is
	// deleted before replicas are lowered, has MachinePool Machines, and removes annotated ones first.
	// +optional
	Behavior PoolBehavior `json:"behavior,omitempty,omitzero"`
}

// PoolBehavior is how a pool differs from the strictest one.
type PoolBehavior struct {
	// lenient makes the pool act only when replicas change: an instance that is deleted is not replaced, whatever the
	// replicas are.
	// +optional
	Lenient bool `json:"lenient,omitempty"`

	// ignoreDeleteAnnotation makes the pool remove any instance when replicas are lowered, whether or not Machines have
	// the annotation cluster.x-k8s.io/delete-machine.
	// +optional
	IgnoreDeleteAnnotation bool `json:"ignoreDeleteAnnotation,omitempty"`

	// removeAnnotated makes the pool remove instances whose Machines have that annotation even if replicas were not
	// lowered, and no others while one of them exists, as Azure does.
	// +optional
	RemoveAnnotated bool `json:"removeAnnotated,omitempty"`

	// withoutMachines makes the pool one without MachinePool Machines.
	// +optional
	WithoutMachines bool `json:"withoutMachines,omitempty"`
}

// SimulatedMachinePoolStatus is the reported state of a SimulatedMachinePool.
type SimulatedMachinePoolStatus struct {
	// conditions holds Ready and Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization reports to Cluster API that the group exists.
	// +optional
	Initialization SimulatedInitialization `json:"initialization,omitempty,omitzero"`

	// ready has the same value, because Cluster API v1.14 reads it.
	// +optional
	Ready bool `json:"ready,omitempty"`

	// replicas is how many instances exist, including those that are being deleted.
	// +optional
	Replicas int32 `json:"replicas"`

	// infrastructureMachineKind makes Cluster API create a Machine for each instance. It is unset for a pool without
	// Machines.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	InfrastructureMachineKind string `json:"infrastructureMachineKind,omitempty"`

	// actedReplicas are the replicas of the MachinePool for which instances were last created or removed.
	// +optional
	ActedReplicas *int32 `json:"actedReplicas,omitempty"`
}

// GetConditions returns the conditions of the status.
func (p *SimulatedMachinePool) GetConditions() []metav1.Condition { return p.Status.Conditions }

// SetConditions replaces the conditions of the status.
func (p *SimulatedMachinePool) SetConditions(conditions []metav1.Condition) {
	p.Status.Conditions = conditions
}

// SimulatedMachinePoolList is a list of SimulatedMachinePools.
//
// +kubebuilder:object:root=true
type SimulatedMachinePoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []SimulatedMachinePool `json:"items"`
}
