// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SimulatedMachineSpec is the desired state of a simulated instance.
type SimulatedMachineSpec struct {
	// providerID is set by the provider when the instance gets one.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ProviderID string `json:"providerID,omitempty"`

	// capacity is the capacity of the Node.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// reserved is subtracted from the capacity. The result is the Node's allocatable. Bootstrap data of kubeadm takes
	// precedence.
	// +optional
	Reserved corev1.ResourceList `json:"reserved,omitempty"`

	// zone is used when the owner Machine has no spec.failureDomain, which takes precedence.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Zone string `json:"zone,omitempty"`

	// region is the region of the Node.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Region string `json:"region,omitempty"`

	// instanceType is the instance type of the Node.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	InstanceType string `json:"instanceType,omitempty"`

	// spot is true if the instance is bought as spot. It changes nothing else.
	// +optional
	Spot bool `json:"spot,omitempty"`

	// architecture is the CPU architecture of the Node: amd64 if it is not set.
	// +optional
	Architecture Architecture `json:"architecture,omitempty"`

	// operatingSystem is the operating system of the Node: linux if it is not set.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	OperatingSystem string `json:"operatingSystem,omitempty"`

	// nodeLabels are additional labels of the Node. Labels that a cloud sets take precedence.
	// +optional
	NodeLabels map[string]string `json:"nodeLabels,omitempty"`

	// nodeTaints are additional taints that the Node has from its creation.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	NodeTaints []corev1.Taint `json:"nodeTaints,omitempty"`

	// delays are how long each step of the instance's life takes.
	// +optional
	Delays Delays `json:"delays,omitempty,omitzero"`

	// failure makes a share of the instances fail.
	// +optional
	Failure *Failure `json:"failure,omitempty"`
}

// Architecture is a CPU architecture.
//
// +kubebuilder:validation:Enum=amd64;arm64;s390x;ppc64le
type Architecture string

// ArchitectureAMD64 is the architecture of an instance without one.
const ArchitectureAMD64 Architecture = "amd64"

// OperatingSystemLinux is the operating system of an instance without one.
const OperatingSystemLinux = "linux"

// Delays are the durations of the steps of an instance's life.
type Delays struct {
	// provisioning runs from the start until status.initialization.provisioned. The provider ID is always set before.
	// +optional
	Provisioning Delay `json:"provisioning,omitempty,omitzero"`

	// providerID runs from the start until spec.providerID is set, or until a failing instance reports its failure.
	// +optional
	ProviderID Delay `json:"providerID,omitempty,omitzero"`

	// nodeJoin runs from the provider ID until the Node exists.
	// +optional
	NodeJoin Delay `json:"nodeJoin,omitempty,omitzero"`

	// termination runs from the deletion until the finalizer is removed.
	// +optional
	Termination Delay `json:"termination,omitempty,omitzero"`
}

// Delay is a duration with jitter.
type Delay struct {
	// duration is the minimum time that the step takes.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must be a duration such as 1s or 500ms, and not negative"
	Duration metav1.Duration `json:"duration,omitempty,omitzero"`

	// jitter is the maximum that is added to duration: uniform below it, and always the same for the same instance.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must be a duration such as 1s or 500ms, and not negative"
	Jitter metav1.Duration `json:"jitter,omitempty,omitzero"`
}

// Failure makes a share of the instances fail: they never get a provider ID.
type Failure struct {
	// percent of the instances that fail; only the UID of an instance decides whether it fails.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Percent int32 `json:"percent"`

	// reason of the Ready condition of a failed instance: InstanceFailed if it is not set.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`
	Reason string `json:"reason,omitempty"`

	// message of the Ready condition of a failed instance.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=10240
	Message string `json:"message,omitempty"`
}

// ArchitectureOrDefault returns the architecture, amd64 if none is set.
func (s *SimulatedMachineSpec) ArchitectureOrDefault() Architecture {
	if s.Architecture == "" {
		return ArchitectureAMD64
	}
	return s.Architecture
}

// OperatingSystemOrDefault returns the operating system, linux if none is set.
func (s *SimulatedMachineSpec) OperatingSystemOrDefault() string {
	if s.OperatingSystem == "" {
		return OperatingSystemLinux
	}
	return s.OperatingSystem
}
