// SPDX-License-Identifier: Apache-2.0

package v1alpha1

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

// ObservedMachineTemplate identifies what a template takes from the MachineDeployment that it follows.
type ObservedMachineTemplate struct {
	// machineDeployment is the name of the MachineDeployment. Example: demo-md-0-x7k2p.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	MachineDeployment string `json:"machineDeployment,omitempty"`

	// hash identifies the MachineDeployment and what the template takes from it, as the
	// operator last examined it. Nothing is launched, and no Node is replaced, while the
	// MachineDeployment has other content.
	// Example: v1-5d5e06e867c8da8497b14e4649f65792.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Hash string `json:"hash,omitempty"`
}

// FromHash returns the hash of what the template takes from a MachineDeployment; empty if it follows
// none, or that was not examined. With the generation, it identifies what is generated from the template.
func (t *KarpenterMachineTemplate) FromHash() string {
	if t.Spec.Template.From == nil || t.Status.From == nil {
		return ""
	}
	return t.Status.From.Hash
}
