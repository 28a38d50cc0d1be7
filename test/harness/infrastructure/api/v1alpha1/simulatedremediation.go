// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RemediationEffect is what a restart does.
// +kubebuilder:validation:Enum=Heals;Restarts;Fails
type RemediationEffect string

const (
	// RemediationHeals restarts the machine, and its Node is healthy after that.
	RemediationHeals RemediationEffect = "Heals"
	// RemediationRestarts restarts the machine, and its Node has the same conditions after that.
	RemediationRestarts RemediationEffect = "Restarts"
	// RemediationFails does nothing, as if the machine did not come back.
	RemediationFails RemediationEffect = "Fails"
)

// SimulatedRemediation asks for a restart of the machine of the Machine that owns it, as Metal3Remediation does. The
// provider restarts the machine once.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1alpha1"
// +kubebuilder:printcolumn:name="Effect",type=string,JSONPath=`.spec.effect`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SimulatedRemediation struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the restart does.
	// +optional
	Spec SimulatedRemediationSpec `json:"spec,omitempty,omitzero"`
	// status is what the provider reports.
	// +optional
	Status SimulatedRemediationStatus `json:"status,omitempty,omitzero"`
}

// SimulatedRemediationSpec is what the restart does.
type SimulatedRemediationSpec struct {
	// effect is what the restart does. Default: Heals.
	// +optional
	Effect RemediationEffect `json:"effect,omitempty"`

	// duration is how long the restart takes. Default: 0s.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must be a duration such as 1s or 500ms, and not negative"
	Duration metav1.Duration `json:"duration,omitempty,omitzero"`
}

// SimulatedRemediationStatus is what the provider reports.
type SimulatedRemediationStatus struct {
	// phase is Done after the restart.
	// +optional
	Phase string `json:"phase,omitempty"`
}

// SimulatedRemediationList is a list of SimulatedRemediations.
//
// +kubebuilder:object:root=true
type SimulatedRemediationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []SimulatedRemediation `json:"items"`
}

// SimulatedRemediationTemplate is the template of SimulatedRemediations.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1alpha1"
// +kubebuilder:printcolumn:name="Effect",type=string,JSONPath=`.spec.template.spec.effect`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SimulatedRemediationTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec contains the template.
	// +optional
	Spec SimulatedRemediationTemplateSpec `json:"spec,omitempty,omitzero"`
}

// SimulatedRemediationTemplateSpec contains the template.
type SimulatedRemediationTemplateSpec struct {
	// template of the SimulatedRemediations.
	// +optional
	Template SimulatedRemediationTemplateResource `json:"template,omitempty,omitzero"`
}

// SimulatedRemediationTemplateResource is the spec that SimulatedRemediations start with.
type SimulatedRemediationTemplateResource struct {
	// spec of the SimulatedRemediations.
	// +optional
	Spec SimulatedRemediationSpec `json:"spec,omitempty,omitzero"`
}

// SimulatedRemediationTemplateList is a list of SimulatedRemediationTemplates.
//
// +kubebuilder:object:root=true
type SimulatedRemediationTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []SimulatedRemediationTemplate `json:"items"`
}
