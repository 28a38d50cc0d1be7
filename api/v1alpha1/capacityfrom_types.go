// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CapacitySource is where the capacity of an offering is counted: objects in the management cluster, such as
// hosts, address pools or quotas. Offerings with equal sources share one count, also those of different
// templates and catalogs.
//
// +structType=atomic
type CapacitySource struct {
	// apiVersion of the objects: their API group and version. Secrets, objects of bootstrap providers and of
	// control planes cannot be counted. Example: metal3.io/v1alpha1.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?v[a-z0-9]+$`
	APIVersion string `json:"apiVersion,omitempty"`

	// kind of the objects. Example: BareMetalHost.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Z][A-Za-z0-9]*$`
	Kind string `json:"kind,omitempty"`

	// namespace of the objects in the management cluster. Default: that of the Cluster. Example: hosts.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`

	// selector of the objects. Only these are watched. Default: all objects of the namespace.
	// Example: {matchLabels: {size: large}}.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// instanceTypeLabel is the key of a label that has the name of the instance type. Then only objects
	// with the name of the offering's instance type count. Default: none.
	// Example: example.com/instance-type.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	InstanceTypeLabel string `json:"instanceTypeLabel,omitempty"`

	// zoneLabel is the key of a label that has the zone. Then only objects with the zone of the offering
	// count. The offering must have zones. Default: none.
	// Example: infrastructure.cluster.x-k8s.io/failure-domain.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	ZoneLabel string `json:"zoneLabel,omitempty"`

	// free is a CEL expression for each object, which is the variable object. Its result is whether the
	// object is free, or how many machines it has room for. The libraries are those of Kubernetes 1.35 and
	// later. Example: object.?status.provisioning.state.orValue('') == 'available'.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Free string `json:"free,omitempty"`

	// consumer is a CEL expression for the name of the Machine, or of its infrastructure object, that an
	// object is used by; empty if none uses it. With it, a Machine is subtracted from what is free
	// until an object names it. Default: none; then until the Machine is provisioned, so that the count
	// can be too low meanwhile. Example: object.?spec.consumerRef.name.orValue('').
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Consumer string `json:"consumer,omitempty"`
}
