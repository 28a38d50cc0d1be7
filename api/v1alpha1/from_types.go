// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

// MachineTemplateSource names the MachineDeployment that a template follows.
//
// +kubebuilder:validation:XValidation:rule="has(self.machineDeployment) != has(self.machineDeploymentTopology)",message="exactly one of machineDeployment and machineDeploymentTopology must be set"
type MachineTemplateSource struct {
	// machineDeployment is the name of a MachineDeployment of the served Cluster.
	// Default: none. Example: workers.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	MachineDeployment string `json:"machineDeployment,omitempty"`

	// machineDeploymentTopology is the name of an entry in
	// spec.topology.workers.machineDeployments of the served Cluster. Cluster API adds a
	// random suffix to the name of the MachineDeployment that it creates from the entry,
	// so the entry is what a manifest can name.
	// Default: none. Example: md-0.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	MachineDeploymentTopology string `json:"machineDeploymentTopology,omitempty"`
}

// ObservedMachineTemplate is what a template has taken from the MachineDeployment that it
// follows. Fields that the template sets itself take precedence.
type ObservedMachineTemplate struct {
	// machineDeployment is the name of the MachineDeployment. Example: demo-md-0-x7k2p.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	MachineDeployment string `json:"machineDeployment,omitempty"`

	// machineDeploymentTopology is the entry of the Cluster's topology that Cluster API
	// created the MachineDeployment from; empty if it is not part of a topology.
	// Example: md-0.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	MachineDeploymentTopology string `json:"machineDeploymentTopology,omitempty"`

	// hash identifies metadata and spec.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Hash string `json:"hash,omitempty"`

	// metadata holds the labels and annotations of its Machines, except those in the
	// domains of Cluster API's topology, Karpenter and this project, and those with which
	// it selects its Machines.
	// +optional
	Metadata clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec holds the settings of its Machines.
	// +optional
	Spec MachineTemplateSpec `json:"spec,omitempty,omitzero"`
}

// FromHash returns the hash of what the template has taken from a MachineDeployment; empty
// if it follows none. With the generation, it identifies what is generated from the template.
func (t *KarpenterMachineTemplate) FromHash() string {
	if t.Spec.Template.From == nil || t.Status.From == nil {
		return ""
	}
	return t.Status.From.Hash
}
