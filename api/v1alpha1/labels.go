// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Labels on generated scalable resources, on their Machines and on what Cluster
// API makes for these. Cluster API propagates a MachineDeployment's
// spec.template.metadata.labels to MachineSet, Machine, InfraMachine and
// BootstrapConfig (its book: reference/api/metadata-propagation.md).
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

	// DeleteMachineValue is what this operator writes as value of Cluster API's
	// cluster.x-k8s.io/delete-machine annotation, so that its own choice can be
	// told from a user's. Cluster API ignores the value
	// (core/reconcilers/machineset/machineset_deletion_order.go).
	DeleteMachineValue = Group
)
