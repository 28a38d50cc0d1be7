// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// InstanceType is a shape of machine and the ways to buy it.
//
// +structType=atomic
// +kubebuilder:validation:XValidation:rule="'cpu' in self.capacity && 'memory' in self.capacity",message="capacity must have cpu and memory",fieldPath=".capacity"
type InstanceType struct {
	// name of the instance type. Nodes have it in the label
	// node.kubernetes.io/instance-type. Example: m5.large.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	Name string `json:"name,omitempty"`

	// capacity is everything that such a machine has, as its Node reports it in
	// status.capacity: at least cpu and memory, and all other resources, in Kubernetes
	// quantities. pods, from 1 to 4096, is how many Pods the kubelet accepts. For a
	// KubeadmConfigTemplate, the operator passes it to the kubelet; for other bootstrap
	// kinds, pass the variable maxPods with a patch. kubelet.maxPods takes precedence.
	// If neither is set, it is 110.
	// Example: {cpu: "2", memory: 8Gi, ephemeral-storage: 80Gi, nvidia.com/gpu: "1"}.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317)",message="each key must be the name of a resource with at most 317 characters"
	Capacity map[corev1.ResourceName]resource.Quantity `json:"capacity,omitempty"`

	// labels that Nodes of this type have, in addition to instance type, zone and
	// capacity type. NodePools and Pods can require them. kubernetes.io/arch defaults to
	// amd64, kubernetes.io/os to linux. In the domain karpenter.cluster.x-k8s.io, the
	// operator adds instance-cpu (in cores) and instance-gpu-count, and you can set
	// instance-memory (in MiB, as sold; default: from the capacity), instance-category,
	// instance-family, instance-generation, instance-size, instance-cpu-manufacturer,
	// instance-gpu-name, instance-local-storage (in GiB) and instance-network-bandwidth
	// (in Mbit/s). Example: {kubernetes.io/arch: arm64,
	// topology.kubernetes.io/region: us-east-1,
	// karpenter.cluster.x-k8s.io/instance-family: m7g}.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="each key must be a label key: an optional domain in lower case and a slash, then at most 63 letters, digits, '-', '_' or '.'"
	// +kubebuilder:validation:XValidation:rule="!self.exists(k, k.startsWith('karpenter.sh/') || k.contains('.karpenter.sh/'))",message="labels must not be in the domain karpenter.sh: Karpenter sets them"
	// +kubebuilder:validation:XValidation:rule="!self.exists(k, k in ['kubernetes.io/hostname', 'node.kubernetes.io/instance-type', 'topology.kubernetes.io/zone'])",message="labels must not contain kubernetes.io/hostname, node.kubernetes.io/instance-type or topology.kubernetes.io/zone: the Node, the name and the offering set them"
	// +kubebuilder:validation:XValidation:rule="!self.exists(k, k.startsWith('node-restriction.kubernetes.io/') || k.contains('.node-restriction.kubernetes.io/') || k in ['node-role.kubernetes.io/control-plane', 'node-role.kubernetes.io/master', 'node-role.kubernetes.io/etcd'])",message="labels must not contain node-role.kubernetes.io/control-plane, master and etcd, and none of node-restriction.kubernetes.io: Pods and controllers know Nodes of others by them"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('karpenter.cluster.x-k8s.io/') || k in ['karpenter.cluster.x-k8s.io/instance-memory', 'karpenter.cluster.x-k8s.io/instance-category', 'karpenter.cluster.x-k8s.io/instance-family', 'karpenter.cluster.x-k8s.io/instance-generation', 'karpenter.cluster.x-k8s.io/instance-size', 'karpenter.cluster.x-k8s.io/instance-cpu-manufacturer', 'karpenter.cluster.x-k8s.io/instance-gpu-name', 'karpenter.cluster.x-k8s.io/instance-local-storage', 'karpenter.cluster.x-k8s.io/instance-network-bandwidth'])",message="labels in the domain karpenter.cluster.x-k8s.io must be instance-memory, instance-category, instance-family, instance-generation, instance-size, instance-cpu-manufacturer, instance-gpu-name, instance-local-storage or instance-network-bandwidth: the operator sets all others"
	Labels map[string]LabelValue `json:"labels,omitempty"`

	// volumeAttachmentLimits are how many volumes of each CSI driver can be attached to such
	// a machine, by the name of the driver, as its Nodes report it in CSINodes: at most 16
	// drivers. Karpenter plans no Node with more volumes. What Nodes report takes
	// precedence. Default: no limit, until a Node has reported one.
	// Example: {ebs.csi.aws.com: 26}.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 63 && k.matches('^[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?$'))",message="each key must be the name of a CSI driver: at most 63 letters, digits, '-' or '.'"
	// +kubebuilder:validation:XValidation:rule="self.all(k, self[k] >= 0)",message="each value must be 0 or more"
	VolumeAttachmentLimits map[string]int32 `json:"volumeAttachmentLimits,omitempty"`

	// devices that DRA drivers publish for such a machine, at most 24 groups of equal devices.
	// Karpenter plans Nodes for ResourceClaims with them, if it does not ignore them (value
	// settings.ignoreDRARequests of the chart). What Nodes publish takes precedence for each
	// driver. Default: none, until a Node has published some.
	// Example: [{driver: gpu.nvidia.com, count: 4, attributes: {productName: {string: NVIDIA L4}}, capacity: {memory: 24Gi}}].
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=24
	Devices []Device `json:"devices,omitempty"`

	// deviceCounters are what devices share that are partitions of the same hardware, at most 8.
	// consumesCounters of devices name them. Default: none.
	// Example: [{driver: gpu.nvidia.com, name: gpu, count: 8, counters: {slices: "7"}}].
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	DeviceCounters []DeviceCounters `json:"deviceCounters,omitempty"`

	// infrastructureRef names the infrastructure machine template of this instance type,
	// in the served Cluster's namespace. The operator uses it without changes: patches
	// change only template.spec.infrastructureRef.
	// Default: template.spec.infrastructureRef.
	// Example: {apiGroup: infrastructure.cluster.x-k8s.io, kind: VSphereMachineTemplate, name: large}.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.apiGroup == 'infrastructure.cluster.x-k8s.io'",message="apiGroup must be infrastructure.cluster.x-k8s.io, that of machine templates",fieldPath=".apiGroup"
	InfrastructureRef *clusterv1.ContractVersionedObjectReference `json:"infrastructureRef,omitempty"`

	// price of one machine of this type for one hour, for offerings that set no price
	// themselves: a decimal number that is not negative, in the currency of all offerings
	// of the cluster. pricing.factors of its catalog apply to it.
	// Default: the price that follows from hardware or pricing. Example: "0.096".
	// +optional
	Price Decimal `json:"price,omitempty"`

	// hardware is what such a machine costs if it is your own, from which its price for one
	// hour follows if price is not set: watts / 1000 × pricing.power.factor ×
	// pricing.power.kilowattHour + purchasePrice / (depreciationMonths × 730).
	// Default: none. Example: {watts: 450, purchasePrice: "9000", depreciationMonths: 48}.
	// +optional
	Hardware *Hardware `json:"hardware,omitempty"`

	// offerings are the ways to buy this type, at most 64, and at most one for each pair
	// of zone and capacity type.
	// Default: the offerings of the catalog that this type is in.
	// Example: [{zones: [us-east-1a, us-east-1b]}, {zones: [us-east-1a], capacityType: spot, price: "0.035"}].
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Offerings []Offering `json:"offerings,omitempty"`
}

// DefaultDepreciationMonths is in how many months a purchase price is written off if hardware does not say so.
const DefaultDepreciationMonths = 60

// Hardware is what a machine costs that was bought.
//
// +kubebuilder:validation:MinProperties=1
type Hardware struct {
	// watts are the power that the machine needs on average. What a kilowatt hour costs is
	// in pricing.power. Default: none. Example: 450.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Watts *int32 `json:"watts,omitempty"`

	// purchasePrice is what the machine has cost, in the currency of the catalog, with all
	// that is paid once for it. Default: "0". Example: "9000".
	// +optional
	PurchasePrice Decimal `json:"purchasePrice,omitempty"`

	// depreciationMonths is in how many months the purchase price is written off. A month
	// has 730 hours. Default: 60. Example: 48.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=600
	DepreciationMonths *int32 `json:"depreciationMonths,omitempty"`
}

// LabelValue is the value of a node label.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
type LabelValue string

// Zone is the name of a zone, as Nodes report it.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
type Zone string

// Decimal is a decimal number that is not negative, such as 0.096.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?$`
type Decimal string

// CapacityType is the way a machine is paid for, in Karpenter's terms.
//
// +kubebuilder:validation:Enum=on-demand;spot;reserved
type CapacityType string

// Offering is one way to buy an instance type.
//
// +kubebuilder:validation:XValidation:rule="(has(self.capacityType) && self.capacityType == 'reserved') == has(self.reservation)",message="reservation must be set if and only if capacityType is reserved",fieldPath=".reservation"
// +kubebuilder:validation:XValidation:rule="!has(self.capacityFrom) || !has(self.reservation)",message="capacityFrom must not be set together with reservation: the limit of a reservation is its count",fieldPath=".capacityFrom"
// +kubebuilder:validation:XValidation:rule="!has(self.maxMachines) || !has(self.reservation)",message="maxMachines must not be set together with reservation: the limit of a reservation is its count",fieldPath=".maxMachines"
type Offering struct {
	// zones of the machines, each an offering of its own: at most 32. Nodes have the zone
	// in the label topology.kubernetes.io/zone. The Cluster's failure domain for the
	// machines has the same name, unless failureDomains of the template names another.
	// Default: none, for infrastructure without zones. Example: [us-east-1a, us-east-1b].
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Zones []Zone `json:"zones,omitempty"`

	// capacityType is how the machines are paid for: on-demand, spot or reserved.
	// Default: on-demand. Example: spot.
	// +optional
	// +kubebuilder:default=on-demand
	CapacityType CapacityType `json:"capacityType,omitempty"`

	// price of one machine for one hour: a decimal number that is not negative, in the
	// currency of all offerings of the cluster. Karpenter takes the cheapest offering
	// that fits. Default: the price of the instance type, multiplied by pricing.factors
	// for the capacity type, so next to nothing for reserved. Example: "0.096".
	// +optional
	Price Decimal `json:"price,omitempty"`

	// maxMachines is how many Machines of this offering NodeClaims can have in each zone.
	// At the limit, the offering is unavailable in that zone. In an InstanceTypeCatalog,
	// it limits all templates together that have the offering from it. You cannot set it
	// together with reservation, whose count is the limit. Default: no limit. Example: 50.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxMachines *int32 `json:"maxMachines,omitempty"`

	// capacityFrom is where the capacity of the offering is counted, at most 4 sources. The
	// offering is unavailable while one of them has nothing left. You cannot set it together
	// with reservation. Default: none. Example: [{apiVersion: metal3.io/v1alpha1,
	// kind: BareMetalHost, instanceTypeLabel: example.com/instance-type,
	// free: "object.?status.provisioning.state.orValue('') == 'available'"}].
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	CapacityFrom []CapacitySource `json:"capacityFrom,omitempty"`

	// reservation is the capacity that was bought in advance. Set it for capacityType
	// reserved, and for no other. Karpenter uses it before any other offering.
	// Default: none. Example: {id: cr-0a1b2c3d4e5f67890, count: 8}.
	// +optional
	Reservation *Reservation `json:"reservation,omitempty"`
}

// Reservation is capacity that was bought in advance.
type Reservation struct {
	// id of the reservation. Patches can pass it to the infrastructure. Nodes have it in
	// the label karpenter.cluster.x-k8s.io/reservation-id. Offerings with the same id
	// share one count, also those of different templates. Example: cr-0a1b2c3d4e5f67890.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	ID string `json:"id,omitempty"`

	// count is how many machines are reserved, and so the limit of all offerings with the
	// id. Example: 8.
	// +required
	// +kubebuilder:validation:Minimum=0
	Count int32 `json:"count"`
}
