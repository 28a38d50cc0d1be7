// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

// Remediation describes how the machines of unhealthy Nodes are restarted.
//
// +kubebuilder:validation:MinProperties=1
type Remediation struct {
	// templateRef names a remediation template of the infrastructure provider, in the served
	// Cluster's namespace. For the Machine of an unhealthy Node, the operator creates a
	// remediation request from it, as Cluster API's MachineHealthCheck does, and deletes the
	// request when the Node is healthy again.
	// Example: {apiGroup: infrastructure.cluster.x-k8s.io, kind: Metal3RemediationTemplate, name: reboot}.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.apiGroup == 'infrastructure.cluster.x-k8s.io'",message="apiGroup must be infrastructure.cluster.x-k8s.io, that of remediation templates",fieldPath=".apiGroup"
	// +kubebuilder:validation:XValidation:rule="self.kind.endsWith('RemediationTemplate')",message="kind must end in RemediationTemplate: what is created from other templates does not restart machines",fieldPath=".kind"
	TemplateRef clusterv1.ContractVersionedObjectReference `json:"templateRef,omitempty,omitzero"`
}
