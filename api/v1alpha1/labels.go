// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

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

	// SpareSinceAnnotation is, on a Machine without a link, the time (RFC 3339) since
	// which it has been spare. A Machine that was never linked is spare since it
	// was created.
	SpareSinceAnnotation = Group + "/spare-since"

	// LeavingSinceAnnotation is, on a Machine, the time (RFC 3339) at which this
	// operator chose it to go. It then counts as leaving and is never linked.
	LeavingSinceAnnotation = Group + "/leaving-since"

	// DrainHookAnnotation is, on every generated Machine, Cluster API's pre-drain
	// hook: a Machine with a Node that somebody else deletes, by hand or by a
	// health check, waits with it until Karpenter has drained the Node. It does not
	// hold up the deletion of a whole Cluster
	// (core/reconcilers/machine/machine_controller.go, isDeleteNodeAllowed).
	DrainHookAnnotation = clusterv1.PreDrainDeleteHookAnnotationPrefix + "/karpenter"
)
