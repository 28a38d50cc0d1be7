// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "github.com/awslabs/operatorpkg/status"

// Condition types of a KarpenterMachineTemplate. Ready is True when all of them
// are; Karpenter launches nothing for a NodePool whose template is not Ready.
const (
	// ConditionClusterReady reports whether the Cluster that this operator serves exists,
	// has its infrastructure and control plane, and is neither paused nor being deleted.
	ConditionClusterReady = "ClusterReady"

	// ConditionInfrastructureReady tells whether every infrastructure template
	// that is referred to exists and is of a kind that Cluster API can use, and for
	// MachinePools whether the infrastructure does what Karpenter needs of it.
	ConditionInfrastructureReady = "InfrastructureReady"

	// ConditionBootstrapReady reports whether the bootstrap template exists, and has what
	// its kind needs. A Secret is not looked up.
	ConditionBootstrapReady = "BootstrapReady"

	// ConditionInstanceTypesReady tells whether there is at least one instance
	// type that can be offered.
	ConditionInstanceTypesReady = "InstanceTypesReady"
)

// ConditionOfferingsAvailable tells whether no offering of a template failed not
// long ago. Ready does not depend on it: the other offerings can be launched.
const ConditionOfferingsAvailable = "OfferingsAvailable"

// ConditionOfferingsValid tells whether everything that a template and its
// discovery describe can be made: no instance type is wrong, no two sources
// contradict each other, and the API server accepts every generated template. Ready
// does not depend on it: the other offerings can be launched.
const ConditionOfferingsValid = "OfferingsValid"

// ConditionCapacityAccurate tells whether Nodes report the capacity that is
// declared for their instance type, within 5 percent.
const ConditionCapacityAccurate = "CapacityAccurate"

// ConditionNodesTainted tells whether the template's Nodes join with the taint
// karpenter.sh/unregistered:NoExecute, without which Pods can run on them before
// Karpenter has set their labels and taints.
const ConditionNodesTainted = "NodesTainted"

// ReasonOfferingsUnavailable says that status.unavailableOfferings names some that
// Karpenter does not choose for now.
const ReasonOfferingsUnavailable = "OfferingsUnavailable"

// ConditionMachineAvailable is, on a NodeClaim, False once the infrastructure could not
// provide a machine, with the reason of UnavailableOffering. It is Unknown while the NodeClaim
// waits for Cluster API, and then True once it has its machine. It stays Unknown after the
// NodeClaim has moved to another offering. A NodeClaim without it has had no failure and no such wait.
const ConditionMachineAvailable = "MachineAvailable"

// Reasons of MachineAvailable while it is Unknown.
const (
	// ReasonOfferingChanged says that the NodeClaim has moved to another offering.
	ReasonOfferingChanged = "OfferingChanged"
	// ReasonBlocked says that Cluster API reports why it creates no Machine now, such as a
	// preflight check that fails. The NodeClaim waits, and its offering stays available.
	ReasonBlocked = "Blocked"
	// ReasonNoProgress says that Cluster API or a provider does not act on what the NodeClaim
	// waits for. The NodeClaim waits, and its offering stays available.
	ReasonNoProgress = "NoProgress"
	// ReasonResumed says that Cluster API acts again. launchTimeout counts from the
	// transition on.
	ReasonResumed = "Resumed"
	// ReasonRejected says that no scalable resource can be created for the NodeClaim. If that
	// does not change within launchTimeout, the launch has failed.
	ReasonRejected = "Rejected"
)

// ConditionMachinesProgressing is False while NodeClaims of a template wait for Machines that
// Cluster API does not create or does not act on, with the reason Blocked or NoProgress and
// what Cluster API reports. Ready does not depend on it.
const ConditionMachinesProgressing = "MachinesProgressing"

// Reasons of the conditions above while they are not True.
const (
	// ReasonClusterNotFound: the served Cluster does not exist.
	ReasonClusterNotFound = "ClusterNotFound"
	// ReasonClusterDeleting: the Cluster is being deleted. Events of NodeClaims that end
	// with it have the same reason.
	ReasonClusterDeleting = "ClusterDeleting"
	// ReasonClusterPaused: spec.paused of the Cluster is true.
	ReasonClusterPaused = "ClusterPaused"
	// ReasonClusterNotProvisioned: infrastructure or control plane are not there yet.
	ReasonClusterNotProvisioned = "ClusterNotProvisioned"
	// ReasonReferenceMissing: a reference that is needed is not set.
	ReasonReferenceMissing = "ReferenceMissing"
	// ReasonReferenceNotFound: the object of a reference does not exist.
	ReasonReferenceNotFound = "ReferenceNotFound"
	// ReasonReferenceKindUnusable: the kind of a reference is unknown, has no
	// Cluster API contract label, or is not a template.
	ReasonReferenceKindUnusable = "ReferenceKindUnusable"
	// ReasonVersionMissing: the bootstrap template's kind needs spec.template.spec.version,
	// which is not set.
	ReasonVersionMissing = "VersionMissing"
	// ReasonScalableResourceUnusable: a MachinePool's infrastructure cannot make or
	// remove single Machines as Karpenter needs it, or another controller sets the
	// replicas of it or of a discovered MachineDeployment.
	ReasonScalableResourceUnusable = "ScalableResourceUnusable"
	// ReasonNoInstanceTypes: there is nothing to offer.
	ReasonNoInstanceTypes = "NoInstanceTypes"
	// ReasonInstanceTypesInvalid: an instance type cannot be offered.
	ReasonInstanceTypesInvalid = "InstanceTypesInvalid"
	// ReasonSourcesConflict: two sources describe one instance type differently.
	ReasonSourcesConflict = "SourcesConflict"
	// ReasonPatchesFailed: a patch cannot be applied to its base template.
	ReasonPatchesFailed = "PatchesFailed"
	// ReasonTemplatesRejected: the API server does not accept a generated template.
	ReasonTemplatesRejected = "TemplatesRejected"
	// ReasonCapacityDiffers: Nodes report another capacity than is declared.
	ReasonCapacityDiffers = "CapacityDiffers"
	// ReasonTaintMissing: Nodes have joined without the taint that Karpenter needs.
	ReasonTaintMissing = "TaintMissing"
)

// GetConditions returns the conditions, for operatorpkg's status.Object.
func (t *KarpenterMachineTemplate) GetConditions() []status.Condition {
	return t.Status.Conditions
}

// SetConditions sets the conditions, for operatorpkg's status.Object.
func (t *KarpenterMachineTemplate) SetConditions(conditions []status.Condition) {
	t.Status.Conditions = conditions
}

// StatusConditions returns the set of conditions with Ready as its root, for
// operatorpkg's status.Object.
func (t *KarpenterMachineTemplate) StatusConditions(opts ...status.ForOption) status.ConditionSet {
	return status.NewReadyConditions(
		ConditionClusterReady,
		ConditionInfrastructureReady,
		ConditionBootstrapReady,
		ConditionInstanceTypesReady,
	).For(t, opts...)
}
