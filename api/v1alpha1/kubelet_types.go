// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// KubeletConfiguration is the part of the kubelet's configuration that decides how much
// of a node's capacity Pods can use. The fields have the names and the meaning of
// kubelet.config.k8s.io/v1beta1.
type KubeletConfiguration struct {
	// maxPods is the number of Pods that can run on one node. It takes precedence over
	// capacity.pods of the instance type. For a KubeadmConfigTemplate, the operator passes it
	// to the kubelet. Default: capacity.pods, or 110 if the instance type has none.
	// Example: 58.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	MaxPods *int32 `json:"maxPods,omitempty"`

	// systemReserved is reserved for the daemons of the operating system, in Kubernetes
	// quantities.
	// Default: nothing. Example: {cpu: 100m, memory: 200Mi}.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=4
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['cpu', 'memory', 'ephemeral-storage', 'pid'])",message="systemReserved must contain only cpu, memory, ephemeral-storage and pid"
	SystemReserved map[corev1.ResourceName]resource.Quantity `json:"systemReserved,omitempty"`

	// kubeReservedFormula computes the reserved cpu and memory from the capacity of each
	// instance type, as the images of a provider do: AKS, EKS or GKE. Resources that
	// kubeReserved sets take precedence. See docs/guides/catalogs.md for the formulas.
	// Default: none. Example: EKS.
	// +optional
	KubeReservedFormula KubeReservedFormula `json:"kubeReservedFormula,omitempty"`

	// kubeReserved is reserved for the daemons of Kubernetes, in Kubernetes quantities.
	// Default: what follows from kubeReservedFormula. Example: {cpu: 80m, memory: 600Mi}.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=4
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['cpu', 'memory', 'ephemeral-storage', 'pid'])",message="kubeReserved must contain only cpu, memory, ephemeral-storage and pid"
	KubeReserved map[corev1.ResourceName]resource.Quantity `json:"kubeReserved,omitempty"`

	// evictionHard sets the thresholds below which the kubelet evicts Pods, as a quantity
	// or a percentage of the capacity. As with the kubelet itself, if you set this field,
	// signals that you do not name have no threshold: with {}, no signal has one.
	// Default: {memory.available: 100Mi, nodefs.available: 10%, nodefs.inodesFree: 5%, imagefs.available: 15%}.
	// Example: {memory.available: 5%}.
	// +optional
	// +kubebuilder:validation:MaxProperties=8
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['memory.available', 'nodefs.available', 'nodefs.inodesFree', 'imagefs.available', 'imagefs.inodesFree', 'containerfs.available', 'containerfs.inodesFree', 'pid.available'])",message="evictionHard must contain only memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree, containerfs.available, containerfs.inodesFree and pid.available"
	EvictionHard map[string]EvictionThreshold `json:"evictionHard,omitzero"`
}

// KubeReservedFormula is a formula for what is reserved for the daemons of Kubernetes.
//
// +kubebuilder:validation:Enum=AKS;EKS;GKE
type KubeReservedFormula string

// Formulas of the images of providers.
const (
	// KubeReservedAKS is that of Azure's images for Kubernetes 1.29 and later
	// (https://learn.microsoft.com/azure/aks/node-resource-reservations).
	KubeReservedAKS KubeReservedFormula = "AKS"
	// KubeReservedEKS is that of Amazon's images for EKS
	// (https://github.com/awslabs/amazon-eks-ami: nodeadm/internal/kubelet/config.go).
	KubeReservedEKS KubeReservedFormula = "EKS"
	// KubeReservedGKE is that of Google's images
	// (https://cloud.google.com/kubernetes-engine/docs/concepts/plan-node-sizes).
	KubeReservedGKE KubeReservedFormula = "GKE"
)

// EvictionThreshold is a quantity (500Mi) or a percentage of the capacity (5%).
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:Pattern=`^([0-9]{1,2}(\.[0-9]+)?%|100%|[0-9]+(\.[0-9]+)?([KMGTPE]i|[numkMGTPE])?)$`
type EvictionThreshold string
