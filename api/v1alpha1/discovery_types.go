// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Discovery finds instance types in the namespace of the served Cluster.
//
// +kubebuilder:validation:XValidation:rule="has(self.infrastructureTemplates) || has(self.machineDeployments)",message="infrastructureTemplates or machineDeployments must be set: they find instance types, and pricing only computes their prices"
type Discovery struct {
	// infrastructureTemplates finds infrastructure machine templates. Each template is
	// one instance type, described by its status.capacity and status.nodeInfo, or by the
	// scale-from-zero annotations, which take precedence. Generated scalable resources
	// use the template without changes.
	// Default: none.
	// +optional
	InfrastructureTemplates *InfrastructureTemplateDiscovery `json:"infrastructureTemplates,omitempty"`

	// machineDeployments finds existing MachineDeployments. Each one is one offering,
	// described by the scale-from-zero annotations. Its existing Machines stay as they
	// are. The operator adds Machines for NodeClaims and removes them again.
	// Default: none.
	// +optional
	MachineDeployments *MachineDeploymentDiscovery `json:"machineDeployments,omitempty"`

	// pricing computes the prices of discovered objects that have none in an annotation.
	// Default: 0.03 for a CPU, 0.004 for a GiB of memory and 0.5 for a GPU, so that the
	// smaller machine is the cheaper one. Example: {cpu: "0.02", memory: "0.003"}.
	// +optional
	Pricing *Pricing `json:"pricing,omitempty"`
}

// InfrastructureTemplateDiscovery finds infrastructure machine templates.
type InfrastructureTemplateDiscovery struct {
	// apiGroup of the kind, which is that of all infrastructure providers.
	// Example: infrastructure.cluster.x-k8s.io.
	// +required
	// +kubebuilder:validation:Enum=infrastructure.cluster.x-k8s.io
	APIGroup string `json:"apiGroup,omitempty"`

	// kind of the templates. Example: VSphereMachineTemplate.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`

	// selector selects templates by their labels. {} selects all templates except those
	// that this operator has generated. Templates with the cluster.x-k8s.io/cluster-name
	// label of another Cluster are never selected. Example: {matchLabels: {karpenter:
	// "true"}}.
	// +required
	Selector metav1.LabelSelector `json:"selector"`
}

// MachineDeploymentDiscovery finds MachineDeployments.
type MachineDeploymentDiscovery struct {
	// selector selects MachineDeployments of the served Cluster by their labels. {}
	// selects all MachineDeployments except those that this operator has generated. Of
	// these, templates can use those with the annotation
	// karpenter.cluster.x-k8s.io/adoptable: "true". Example: {matchLabels: {karpenter: "true"}}.
	// +required
	Selector metav1.LabelSelector `json:"selector"`
}
