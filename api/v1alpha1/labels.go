// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

// Labels on generated scalable resources, on their Machines and on what Cluster
// API makes for these. Cluster API propagates a MachineDeployment's
// spec.template.metadata.labels to MachineSet, Machine, InfraMachine and
// BootstrapConfig, and a MachinePool's to its Machines (its book:
// reference/api/metadata-propagation.md).
const (
	// TemplateLabel names the KarpenterMachineTemplate an object was generated from.
	TemplateLabel = Group + "/template"

	// InstanceTypeLabel names the instance type of a scalable resource.
	InstanceTypeLabel = Group + "/instance-type"

	// ZoneLabel is the zone of a scalable resource; absent when the offering has none.
	ZoneLabel = Group + "/zone"

	// CapacityTypeLabel is the capacity type of a scalable resource: on-demand or spot.
	CapacityTypeLabel = Group + "/capacity-type"

	// TemplateHashLabel is the hash of all that shapes a Machine of a scalable
	// resource. A template change that alters it makes a new scalable resource.
	TemplateHashLabel = Group + "/template-hash"

	// NodeClaimUIDLabel is, on a Machine, the UID of the NodeClaim it serves.
	// Together with NodeClaimAnnotation it is the link, which is written on the
	// Machine and nowhere else.
	NodeClaimUIDLabel = Group + "/node-claim-uid"
)

const (
	// NodeClaimAnnotation is, on a Machine, the name of the NodeClaim it serves.
	NodeClaimAnnotation = Group + "/node-claim"

	// ScalableResourceAnnotation names, on a NodeClaim, the scalable resource
	// (in the served Cluster's namespace) that makes its Machine.
	ScalableResourceAnnotation = Group + "/scalable-resource"

	// TemplateHashAnnotation is, on a NodeClaim, the hash of its scalable
	// resource, see TemplateHashLabel.
	TemplateHashAnnotation = Group + "/template-hash"

	// EmptySinceAnnotation is, on a scalable resource, the time (RFC 3339) since
	// which it has had neither claims nor Machines.
	EmptySinceAnnotation = Group + "/empty-since"

	// TemplateAnnotationsAnnotation lists, on a generated scalable resource, the keys of
	// the annotations that it has from spec.template.scalableResourceAnnotations, sorted
	// and separated by commas. Those that the template no longer has are removed.
	TemplateAnnotationsAnnotation = Group + "/annotations-from-template"

	// SpareSinceAnnotation is, on a Machine without a link, the time (RFC 3339) since
	// which it has been spare. A Machine that was never linked is spare since it
	// was created.
	SpareSinceAnnotation = Group + "/spare-since"

	// MarkedForDeletionAtAnnotation is, on a Machine, the time (RFC 3339) at which this
	// operator chose it to go. It then counts as leaving and is never linked.
	MarkedForDeletionAtAnnotation = Group + "/marked-for-deletion-at"

	// ReplicasSetAtAnnotation is, on a MachinePool, the time (RFC 3339) at which this
	// operator last set its replicas.
	ReplicasSetAtAnnotation = Group + "/replicas-set-at"

	// ReplicasLoweredAtAnnotation is, on a MachineDeployment, the time (RFC 3339) at which this operator
	// lowered its replicas below the number of Machines asked for, because its MachineSet
	// reported that preflight checks keep it from creating them. It is removed when replicas
	// change for another reason.
	ReplicasLoweredAtAnnotation = Group + "/replicas-lowered-at"

	// DrainHookAnnotation is, on every Machine that serves a NodeClaim and on every
	// generated one of a MachineDeployment, Cluster API's pre-drain hook: a Machine with a Node that somebody else deletes, by hand or by a
	// health check, waits with it until Karpenter has drained the Node. It does not
	// hold up the deletion of a whole Cluster
	// (core/reconcilers/machine/machine_controller.go, isDeleteNodeAllowed).
	DrainHookAnnotation = clusterv1.PreDrainDeleteHookAnnotationPrefix + "/karpenter"

	// TerminateHookAnnotation is, on Machines of a MachinePool, Cluster API's
	// pre-terminate hook: it keeps the instance of a deleted Machine until the
	// MachinePool's replicas do not count it any more.
	TerminateHookAnnotation = clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/karpenter"
)

// Labels of Nodes that this operator derives from an instance type, or that an
// instance type may give (the last two). NodePools and Pods can require them.
const (
	// InstanceCPULabel is the number of CPUs, rounded down: "4".
	InstanceCPULabel = Group + "/instance-cpu"
	// InstanceMemoryLabel is the memory in MiB, rounded down: "8192".
	InstanceMemoryLabel = Group + "/instance-memory"
	// InstanceGPUCountLabel is the number of GPUs, of whatever vendor: "1".
	InstanceGPUCountLabel = Group + "/instance-gpu-count"
	// InstanceGPUNameLabel is the model of the GPUs, where it is given: "t4".
	InstanceGPUNameLabel = Group + "/instance-gpu-name"
	// InstanceFamilyLabel is the family of the type, where it is given: "m7g".
	InstanceFamilyLabel = Group + "/instance-family"
	// ReservationIDLabel is the id of the reservation a Node is from.
	ReservationIDLabel = Group + "/reservation-id"
)

// Annotations with which a platform team describes discovered infrastructure
// templates and MachineDeployments, beside cluster-autoscaler's annotations for
// scaling from zero (capacity.cluster-autoscaler.kubernetes.io/...).
const (
	// DiscoveredInstanceTypeAnnotation is the name of the instance type.
	// Default: that of the label node.kubernetes.io/instance-type, or the object's name.
	DiscoveredInstanceTypeAnnotation = Group + "/instance-type"
	// DiscoveredZonesAnnotation are the zones of an infrastructure template, with
	// commas between them. Default: none. A MachineDeployment's is its failureDomain.
	DiscoveredZonesAnnotation = Group + "/zones"
	// DiscoveredCapacityTypeAnnotation is on-demand, the default, or spot.
	DiscoveredCapacityTypeAnnotation = Group + "/capacity-type"
	// DiscoveredPriceAnnotation is the price of one machine for one hour. Default: an
	// estimate from the capacity, by which the smaller machine is the cheaper one.
	DiscoveredPriceAnnotation = Group + "/price"
	// DiscoveredMaxMachinesAnnotation is how many Machines each offering of an
	// infrastructure template may have. For a MachineDeployment that is
	// cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size.
	DiscoveredMaxMachinesAnnotation = Group + "/max-machines"
)

const (
	// PriceAnnotation is, on a NodeClaim, the price of the offering it was launched
	// with, for when its template does not offer that any more.
	PriceAnnotation = Group + "/price"

	// TemplateRevisionAnnotation is, on a NodeClaim, the revision of the template that it was
	// launched from, see ObservedCapacity.
	TemplateRevisionAnnotation = Group + "/template-revision"

	// TaintMissingAnnotation is, on a NodeClaim, there if its Node joined without the
	// taint karpenter.sh/unregistered:NoExecute.
	TaintMissingAnnotation = Group + "/taint-missing"

	// AdoptedAnnotation is, on a MachineDeployment that this operator did not generate
	// and that makes Machines for NodeClaims, the time (RFC 3339) at which the youngest
	// Machine was made that it had before. Those that are not younger are never touched.
	AdoptedAnnotation = Group + "/adopted"

	// UnmanagedReplicasAnnotation is, on an adopted MachineDeployment, how many of its
	// replicas are not for NodeClaims: those it had when it was adopted. Change it to
	// have another number of them.
	UnmanagedReplicasAnnotation = Group + "/unmanaged-replicas"
)
