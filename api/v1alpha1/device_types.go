// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "k8s.io/apimachinery/pkg/api/resource"

// Device is a number of equal devices of a machine, as a DRA driver publishes them in the ResourceSlices of its Node.
type Device struct {
	// driver is the name of the DRA driver that publishes the devices.
	// Example: gpu.nvidia.com.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?$`
	Driver string `json:"driver,omitempty"`

	// pool tells the pools of a driver apart that publishes several for one Node. It need not
	// be the name that the driver gives it. Default: the only pool of the driver. Example: a.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Pool string `json:"pool,omitempty"`

	// name of the devices, for people who read it. Default: device. Example: gpu.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`

	// count is how many of these devices the machine has. Default: 1. Example: 4.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=128
	Count *int32 `json:"count,omitempty"`

	// attributes of each of the devices by which DeviceClasses and ResourceClaims select them,
	// at most 32, as ResourceSlices have them. A name without a domain is in the domain of the
	// driver. Default: none.
	// Example: {productName: {string: NVIDIA L4}, cudaComputeCapability: {version: 8.9.0}}.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 96)",message="each key must be the name of an attribute with at most 96 characters"
	Attributes map[string]DeviceAttribute `json:"attributes,omitempty"`

	// sharedAttributes are attributes whose values only the machine knows, such as the root of
	// a bus, at most 8. Devices of the machine have the same value if they have the same text
	// here, also those of different drivers, so that a claim with matchAttribute gets them
	// together. Default: none. Example: {resource.kubernetes.io/pcieRoot: a}.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=8
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 96)",message="each key must be the name of an attribute with at most 96 characters"
	SharedAttributes map[string]LabelValue `json:"sharedAttributes,omitempty"`

	// capacity of each of the devices, at most 16. A name without a domain is in the domain of
	// the driver. Default: none. Example: {memory: 24Gi}.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 96)",message="each key must be the name of a capacity with at most 96 characters"
	Capacity map[string]resource.Quantity `json:"capacity,omitempty"`

	// allowMultipleAllocations reports whether several claims can share a device, each with a
	// part of its capacity. Default: false. Example: true.
	// +optional
	AllowMultipleAllocations bool `json:"allowMultipleAllocations,omitempty"`

	// requestPolicies are which parts of a capacity claims get, by the name of the capacity, if
	// they share a device. Default: any part, and the whole for a claim that requests none.
	// Example: {memory: {default: 4Gi, validRange: {min: 1Gi, step: 1Gi}}}.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 96)",message="each key must be the name of a capacity with at most 96 characters"
	RequestPolicies map[string]CapacityRequestPolicy `json:"requestPolicies,omitempty"`

	// consumesCounters are what a device takes from deviceCounters of its driver and pool while
	// it is allocated, at most 2. Devices that take from the same counters are partitions of the
	// same hardware. Default: none. Example: [{counterSet: gpu, counters: {slices: "1"}}].
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	ConsumesCounters []CounterConsumption `json:"consumesCounters,omitempty"`
}

// DeviceAttribute is the value of an attribute. Exactly one field is set.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=1
type DeviceAttribute struct {
	// int is a number. Default: the attribute has another type. Example: 3.
	// +optional
	Int *int64 `json:"int,omitempty"`

	// bool is whether something holds. Default: the attribute has another type. Example: true.
	// +optional
	Bool *bool `json:"bool,omitempty"`

	// string is a text. Default: the attribute has another type. Example: NVIDIA L4.
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=64
	String *string `json:"string,omitempty"`

	// version is a semantic version. Default: the attribute has another type. Example: 8.9.0.
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=64
	Version *string `json:"version,omitempty"`
}

// CapacityRequestPolicy is which parts of a capacity claims get that share a device. A smaller request is rounded up.
//
// +kubebuilder:validation:MinProperties=1
type CapacityRequestPolicy struct {
	// default is what a claim gets that requests nothing of it. Default: the whole capacity.
	// Example: 4Gi.
	// +optional
	Default *resource.Quantity `json:"default,omitempty"`

	// validValues are the only parts that claims get, at most 10, in ascending order. Set
	// default, too. Default: any. Example: [1Gi, 2Gi, 4Gi].
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	ValidValues []resource.Quantity `json:"validValues,omitempty"`

	// validRange are the least and greatest part that claims get. Set default, too, and do not
	// set validValues. Default: any. Example: {min: 1Gi, step: 1Gi}.
	// +optional
	ValidRange *CapacityRange `json:"validRange,omitempty"`
}

// CapacityRange is the least and greatest part of a capacity.
type CapacityRange struct {
	// min is the least part. Example: 1Gi.
	// +required
	Min *resource.Quantity `json:"min,omitempty"`

	// max is the greatest part. Default: the whole capacity. Example: 8Gi.
	// +optional
	Max *resource.Quantity `json:"max,omitempty"`

	// step is by how much parts between min and max differ. Default: any. Example: 1Gi.
	// +optional
	Step *resource.Quantity `json:"step,omitempty"`
}

// CounterConsumption is what a device takes from one counter set.
type CounterConsumption struct {
	// counterSet is the name of one of deviceCounters with the same driver and pool. If it has a
	// count, the devices of a group take from its sets in turn: the first device from the first
	// set. Example: gpu.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	CounterSet string `json:"counterSet,omitempty"`

	// counters are what the device takes, at most 16. Example: {slices: "1"}.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 63)",message="each key must be the name of a counter with at most 63 characters"
	Counters map[string]resource.Quantity `json:"counters,omitempty"`
}

// DeviceCounters are what the partitions of one piece of hardware share, or those of several equal ones.
type DeviceCounters struct {
	// driver is the name of the DRA driver that publishes the counters.
	// Example: gpu.nvidia.com.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?$`
	Driver string `json:"driver,omitempty"`

	// pool is that of the devices that take from the counters.
	// Default: the only pool of the driver. Example: a.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Pool string `json:"pool,omitempty"`

	// name of the counter set. Example: gpu.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`

	// count is how many equal counter sets there are. Default: 1. Example: 8.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	Count *int32 `json:"count,omitempty"`

	// counters of each set, at most 16. Example: {slices: "7"}.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 63)",message="each key must be the name of a counter with at most 63 characters"
	Counters map[string]resource.Quantity `json:"counters,omitempty"`
}

// ObservedDevices are the devices that Nodes of one instance type publish. It is what most Nodes publish, without the
// attributes that differ from Node to Node. It follows the Nodes that exist. When none exists any more, it stays as it was if
// more than one Node has published it.
type ObservedDevices struct {
	// instanceType of the Nodes.
	// +required
	// +kubebuilder:validation:MaxLength=63
	InstanceType string `json:"instanceType"`

	// revision is the hash of the part of the template's spec from which the Nodes were
	// created. What was learned from another revision is discarded.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Revision string `json:"revision"`

	// nodes is how many Nodes have published this: 1, or 2 for two and more. It is 0 when
	// the only one no longer exists. Karpenter then plans with the declared devices, until a
	// second Node publishes the same.
	// +optional
	Nodes int32 `json:"nodes"`

	// devices that the drivers publish, in the form of devices of an instance type.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	Devices []Device `json:"devices,omitempty"`

	// deviceCounters that the drivers publish.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	DeviceCounters []DeviceCounters `json:"deviceCounters,omitempty"`
}
