// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Discovery finds instance types in the namespace of the served Cluster.
//
// +kubebuilder:validation:MinProperties=1
type Discovery struct {
	// infrastructureTemplates finds infrastructure machine templates. Each is an
	// instance type by its status.capacity and status.nodeInfo, or by the
	// scale-from-zero annotations, which win; generated scalable resources use it as
	// it is.
	// +optional
	InfrastructureTemplates *InfrastructureTemplateDiscovery `json:"infrastructureTemplates,omitempty"`

	// machineDeployments finds MachineDeployments that exist already. Each is one
	// offering, by the scale-from-zero annotations. The Machines it has stay as they
	// are; Machines for NodeClaims are added to it and removed again.
	// +optional
	MachineDeployments *MachineDeploymentDiscovery `json:"machineDeployments,omitempty"`
}

// InfrastructureTemplateDiscovery finds infrastructure machine templates.
type InfrastructureTemplateDiscovery struct {
	// apiGroup of the kind. Example: infrastructure.cluster.x-k8s.io.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	APIGroup string `json:"apiGroup"`

	// kind of the templates. Example: VSphereMachineTemplate.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// selector chooses templates by their labels; {} chooses all but those that this
	// operator has generated. Templates with the cluster.x-k8s.io/cluster-name label of
	// another Cluster are never chosen. Example: {matchLabels: {karpenter: "true"}}.
	// +required
	Selector metav1.LabelSelector `json:"selector"`
}

// MachineDeploymentDiscovery finds MachineDeployments.
type MachineDeploymentDiscovery struct {
	// selector chooses MachineDeployments of the served Cluster by their labels; {}
	// chooses all but those that this operator has generated.
	// Example: {matchLabels: {karpenter: "true"}}.
	// +required
	Selector metav1.LabelSelector `json:"selector"`
}
