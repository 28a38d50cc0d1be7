// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

// Labels on generated scalable resources, on their Machines and on the objects that
// Cluster API creates for them. Cluster API propagates a MachineDeployment's
// spec.template.metadata.labels to MachineSet, Machine, InfraMachine and BootstrapConfig,
// and a MachinePool's to its Machines (its book: reference/api/metadata-propagation.md).
const (
	// TemplateLabel names the KarpenterMachineTemplate from which an object was
	// generated.
	TemplateLabel = Group + "/template"

	// InstanceTypeLabel names the instance type of a scalable resource.
	InstanceTypeLabel = Group + "/instance-type"

	// ZoneLabel is the zone of a scalable resource. It is absent if the offering has no
	// zone.
	ZoneLabel = Group + "/zone"

	// CapacityTypeLabel is the capacity type of a scalable resource: on-demand, spot or
	// reserved.
	CapacityTypeLabel = Group + "/capacity-type"

	// TemplateHashLabel is the hash of everything that shapes a Machine of a scalable
	// resource. A template change that alters the hash leads to a new scalable resource. On a
	// copy of a base template, it is the hash of its content. Names end in the first 12 digits.
	// Example: v1-5c1e0f42a7d93b8860f1c2e4d5b6a798.
	TemplateHashLabel = Group + "/template-hash"

	// NodeClaimUIDLabel is, on a Machine, the UID of the NodeClaim that it serves.
	// Together with NodeClaimAnnotation it is the link, which is written on the Machine
	// and nowhere else.
	NodeClaimUIDLabel = Group + "/node-claim-uid"
)

// OtherMemberLabel is the label of the MachineDeployments that karpenter-provider-cluster-api scales, and of their
// Machines. It is the other Karpenter provider for Cluster API. This operator does not adopt such a MachineDeployment,
// and does not take the label from one that a template follows.
const OtherMemberLabel = "node.cluster.x-k8s.io/karpenter-member"

const (
	// NodeClaimAnnotation is, on a Machine, the name of the NodeClaim that it serves.
	NodeClaimAnnotation = Group + "/node-claim"

	// ScalableResourceAnnotation names, on a NodeClaim, the scalable resource of its
	// Machine. It is in the served Cluster's namespace.
	ScalableResourceAnnotation = Group + "/scalable-resource"

	// TemplateHashAnnotation is, on a NodeClaim, the hash of its scalable resource, see
	// TemplateHashLabel.
	TemplateHashAnnotation = Group + "/template-hash"

	// MachineHashesAnnotation has, on a NodeClaim, the hashes of what its Machine was
	// generated from: version, kubelet, infrastructure and bootstrap. If the template
	// generates something else now, the NodeClaim drifts. Each hash begins with the version of its
	// computation, and those of templates with an API version before that. The operator replaces
	// hashes with another version. Here, digits are left out.
	// Example: bootstrap=v1beta2/v1-1f0c2a9e,infrastructure=v1beta2/v1-77aa01bc,kubelet=v1-5c1e0f42,version=v1.36.3.
	MachineHashesAnnotation = Group + "/machine-hashes"

	// EmptySinceAnnotation is, on a scalable resource, the time (RFC 3339) since which it
	// has had neither NodeClaims nor Machines.
	EmptySinceAnnotation = Group + "/empty-since"

	// TemplateAnnotationsAnnotation lists, on a generated scalable resource, the keys of
	// the annotations that it has from spec.scalableResource.annotations, sorted
	// and separated by commas. The operator removes annotations that the template no
	// longer has.
	TemplateAnnotationsAnnotation = Group + "/annotations-from-template"

	// InPlaceHashAnnotation is, on a generated scalable resource, the hash of those
	// settings of its template that were last applied in place: labels, annotations,
	// deletion timeouts, readiness gates and minReadySeconds of Machines. The operator
	// applies them again when the template has others, and leaves what others change.
	InPlaceHashAnnotation = Group + "/in-place-hash"

	// SpareSinceAnnotation is, on a Machine without a link, the time (RFC 3339) since
	// which it has been spare. A Machine that was never linked has been spare since its
	// creation.
	SpareSinceAnnotation = Group + "/spare-since"

	// MarkedForDeletionAtAnnotation is, on a Machine, the time (RFC 3339) at which this
	// operator marked it for deletion. The Machine then counts as leaving and is never
	// linked.
	MarkedForDeletionAtAnnotation = Group + "/marked-for-deletion-at"

	// ReplicasSetAtAnnotation is, on a MachinePool, the time (RFC 3339) at which this
	// operator last set its replicas.
	ReplicasSetAtAnnotation = Group + "/replicas-set-at"

	// ReplicasLoweredAtAnnotation is, on a MachineDeployment, the time (RFC 3339) at
	// which this operator lowered its replicas below the number of Machines requested,
	// because its MachineSet reported that preflight checks prevent it from creating
	// them. The operator removes it when it changes the replicas for another reason.
	ReplicasLoweredAtAnnotation = Group + "/replicas-lowered-at"

	// DrainHookAnnotation is Cluster API's pre-drain hook. It is on every Machine that
	// serves a NodeClaim, until the Machine is marked for deletion. If a user or a health
	// check deletes a Machine with a Node, the Machine waits with this hook until Karpenter
	// has drained the Node. The hook does not block the deletion of a
	// whole Cluster (core/reconcilers/machine/machine_controller.go,
	// isDeleteNodeAllowed).
	DrainHookAnnotation = clusterv1.PreDrainDeleteHookAnnotationPrefix + "/karpenter"

	// TerminateHookAnnotation is, on Machines of a MachinePool, Cluster API's
	// pre-terminate hook. It keeps the instance of a deleted Machine until the
	// MachinePool's replicas no longer count it.
	TerminateHookAnnotation = clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/karpenter"
)

// TerminationFinalizer is the finalizer of every KarpenterMachineTemplate. The operator
// removes it when no NodeClaim uses the template and nothing that was generated from it is
// left.
const TerminationFinalizer = Group + "/termination"

// Labels of Nodes that this operator derives from an instance type, or that an instance
// type can set. NodePools and Pods can require them.
const (
	// InstanceCPULabel is the number of CPUs, rounded down: "4".
	InstanceCPULabel = Group + "/instance-cpu"
	// InstanceMemoryLabel is the memory in MiB, as it is sold: "8192". If it is not set, it is the memory of
	// the capacity, rounded down.
	InstanceMemoryLabel = Group + "/instance-memory"
	// InstanceGPUCountLabel is the number of GPUs of any vendor: "1".
	InstanceGPUCountLabel = Group + "/instance-gpu-count"
	// InstanceGPUNameLabel is the model of the GPUs, if it is set: "t4".
	InstanceGPUNameLabel = Group + "/instance-gpu-name"
	// InstanceCategoryLabel is the category of the type, if it is set: "m".
	InstanceCategoryLabel = Group + "/instance-category"
	// InstanceFamilyLabel is the family of the type, if it is set: "m7g".
	InstanceFamilyLabel = Group + "/instance-family"
	// InstanceGenerationLabel is the generation of the type, if it is set: "7".
	InstanceGenerationLabel = Group + "/instance-generation"
	// InstanceSizeLabel is the size within the family, if it is set: "large".
	InstanceSizeLabel = Group + "/instance-size"
	// InstanceCPUManufacturerLabel is the manufacturer of the CPUs, if it is set: "intel".
	InstanceCPUManufacturerLabel = Group + "/instance-cpu-manufacturer"
	// InstanceLocalStorageLabel is the size of the local disks in GiB, if it is set: "900".
	InstanceLocalStorageLabel = Group + "/instance-local-storage"
	// InstanceNetworkBandwidthLabel is the bandwidth in Mbit/s, if it is set: "12500".
	InstanceNetworkBandwidthLabel = Group + "/instance-network-bandwidth"
	// ReservationIDLabel is the id of the reservation that a Node is from.
	ReservationIDLabel = Group + "/reservation-id"
)

// Annotations with which a platform team describes discovered infrastructure templates
// and MachineDeployments, in addition to cluster-autoscaler's annotations for scaling
// from zero (capacity.cluster-autoscaler.kubernetes.io/...).
const (
	// DiscoveredInstanceTypeAnnotation is the name of the instance type.
	// Default: the label node.kubernetes.io/instance-type, or the object's name.
	DiscoveredInstanceTypeAnnotation = Group + "/instance-type"
	// DiscoveredZonesAnnotation lists the zones of an infrastructure template, separated
	// by commas. Default: none. The zone of a MachineDeployment is its failureDomain.
	DiscoveredZonesAnnotation = Group + "/zones"
	// DiscoveredCapacityTypeAnnotation is on-demand or spot. Default: on-demand.
	DiscoveredCapacityTypeAnnotation = Group + "/capacity-type"
	// DiscoveredPriceAnnotation is the price of one machine for one hour. Default: an
	// estimate from the capacity, in which the smaller machine is the cheaper one.
	DiscoveredPriceAnnotation = Group + "/price"
	// DiscoveredMaxMachinesAnnotation is how many Machines each offering of an
	// infrastructure template can have, of all templates that select it. For a
	// MachineDeployment, use
	// cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size.
	DiscoveredMaxMachinesAnnotation = Group + "/max-machines"
)

const (
	// PriceAnnotation is, on a NodeClaim, the price of the offering with which it was
	// launched. The operator uses it when the template no longer has that offering.
	PriceAnnotation = Group + "/price"

	// TemplateRevisionAnnotation is, on a NodeClaim, the revision of the template from
	// which it was launched, see ObservedCapacity.
	TemplateRevisionAnnotation = Group + "/template-revision"

	// RolloutResumedAtAnnotation is, on a template, the time (RFC 3339) at which a user has
	// resumed its rollout. A rollout that stopped before that begins again.
	RolloutResumedAtAnnotation = Group + "/rollout-resumed-at"

	// RemediationAnnotation names, on a NodeClaim, the remediation request that the operator has created for its
	// Machine, or is about to create, in the served Cluster's namespace: kind and API group, name, and the ID of
	// the restart, separated by slashes. The operator removes it with the request.
	RemediationAnnotation = Group + "/remediation"

	// RemediationOperationAnnotation identifies, on a remediation request, the restart for which the operator has
	// created it: the name of the NodeClaim and an ID, separated by a slash. Requests of other creators do not have it.
	RemediationOperationAnnotation = Group + "/remediation-operation"

	// TaintMissingAnnotation is present on a NodeClaim if its Node joined without the
	// taint karpenter.sh/unregistered:NoExecute.
	TaintMissingAnnotation = Group + "/taint-missing"

	// AdoptableAnnotation is, with the value "true", on a MachineDeployment that templates may
	// use. Only users of the management cluster can set it.
	AdoptableAnnotation = Group + "/adoptable"

	// AdoptedAnnotation is, on a MachineDeployment that serves NodeClaims and that this
	// operator did not generate, the creation time (RFC 3339) of the youngest Machine
	// that it had before. The operator never changes or deletes Machines that are not
	// younger.
	AdoptedAnnotation = Group + "/adopted"

	// UnmanagedReplicasAnnotation is, on an adopted MachineDeployment, how many of its
	// replicas are not for NodeClaims: those that it had when it was adopted. Change it
	// to have another number of them.
	UnmanagedReplicasAnnotation = Group + "/unmanaged-replicas"
)

// SettableLabels are the labels of this domain that an instance type can set.
var SettableLabels = []string{
	InstanceMemoryLabel, InstanceCategoryLabel, InstanceFamilyLabel, InstanceGenerationLabel, InstanceSizeLabel,
	InstanceCPUManufacturerLabel, InstanceGPUNameLabel, InstanceLocalStorageLabel, InstanceNetworkBandwidthLabel,
}
