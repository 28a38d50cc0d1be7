// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "github.com/awslabs/operatorpkg/status"

// Condition types of a KarpenterMachineTemplate. Ready is True when all of them are True.
// If a template is not Ready, Karpenter launches nothing for its NodePools.
const (
	// ConditionClusterReady reports whether the Cluster that this operator serves exists,
	// has its infrastructure and control plane, and is neither paused nor being deleted.
	ConditionClusterReady = "ClusterReady"

	// ConditionFromReady reports whether the MachineDeployment that spec.template.from
	// names can be used. A template without from does not have this condition.
	ConditionFromReady = "FromReady"

	// ConditionInfrastructureReady reports whether every infrastructure template that the
	// template and its own instance types refer to exists and is of a kind that Cluster API
	// can use. For MachinePools, it also reports whether the infrastructure supports what
	// Karpenter needs. OfferingsValid reports what types of catalogs refer to.
	ConditionInfrastructureReady = "InfrastructureReady"

	// ConditionBootstrapReady reports whether the bootstrap template exists, and has what
	// its kind needs. The operator does not look up a Secret.
	ConditionBootstrapReady = "BootstrapReady"

	// ConditionVersionReady reports which Kubernetes version new Machines get, and why.
	// It is False if Cluster API or Kubernetes does not allow that version in the Cluster.
	ConditionVersionReady = "VersionReady"

	// ConditionInstanceTypesReady reports whether at least one instance type can be
	// offered.
	ConditionInstanceTypesReady = "InstanceTypesReady"
)

// ConditionDeletable is False on a template that is being deleted, as long as NodeClaims use
// it or objects that were generated from it exist. A template that is not being deleted does
// not have this condition. While a template has it, the template is not Ready.
const ConditionDeletable = "Deletable"

// ConditionOfferingsAvailable reports whether all offerings of a template are available:
// none has failed and is waiting until it can be chosen again. Ready does not depend on
// it, because the other offerings can be launched.
const ConditionOfferingsAvailable = "OfferingsAvailable"

// ConditionOfferingsValid reports whether everything that a template and its discovery
// describe can be created: every instance type is correct, no two sources contradict each
// other, and the API server accepts every generated template. Ready does not depend on
// it, because the other offerings can be launched.
const ConditionOfferingsValid = "OfferingsValid"

// ConditionCapacityAccurate reports whether Nodes report the capacity that is declared
// for their instance type, within 5 percent.
const ConditionCapacityAccurate = "CapacityAccurate"

// ConditionNodesTainted reports whether the template's Nodes join with the taint
// karpenter.sh/unregistered:NoExecute. Without it, Pods can run on them before Karpenter
// has set their labels and taints.
const ConditionNodesTainted = "NodesTainted"

// ConditionNodesCurrent reports whether all Nodes of a template are what the template
// generates now. While it is False, the message counts the outdated Nodes by the reason of
// their drift. Ready does not depend on it.
const ConditionNodesCurrent = "NodesCurrent"

// ReasonOfferingsUnavailable means that status.unavailableOfferings lists offerings that Karpenter
// does not choose at the moment.
const ReasonOfferingsUnavailable = "OfferingsUnavailable"

// ReasonInterrupted is the reason of an UnavailableOffering whose capacity was taken away: a termination
// handler has announced the end of an instance of it. Events of the Node, its NodeClaim and their
// template have the same reason.
const ReasonInterrupted = "Interrupted"

// ConditionMachineAvailable is, on a NodeClaim, False if the infrastructure could not
// provide a machine, with the reason of UnavailableOffering. It is Unknown while the
// NodeClaim waits for Cluster API, and becomes True when the NodeClaim has its machine.
// It stays Unknown after the operator has relaunched the NodeClaim with another offering.
// A NodeClaim without this condition has had no failure and no such wait.
const ConditionMachineAvailable = "MachineAvailable"

// Reasons of MachineAvailable while it is Unknown.
const (
	// ReasonOfferingChanged: the operator has relaunched the NodeClaim with another
	// offering.
	ReasonOfferingChanged = "OfferingChanged"
	// ReasonBlocked: Cluster API reports why it creates no Machine at the moment, such as
	// a preflight check that fails. The NodeClaim waits, and its offering stays
	// available.
	ReasonBlocked = "Blocked"
	// ReasonNoProgress: Cluster API or a provider does not act on what the NodeClaim
	// waits for. The NodeClaim waits, and its offering stays available.
	ReasonNoProgress = "NoProgress"
	// ReasonResumed: Cluster API acts again. launchTimeout counts from the transition on.
	ReasonResumed = "Resumed"
	// ReasonRejected: no scalable resource can be created for the NodeClaim. The launch
	// fails if that does not change within launchTimeout.
	ReasonRejected = "Rejected"
)

// ConditionProviderIDUnchanged is, on a NodeClaim, False while its Machine has another provider ID
// than the one with which its Node was registered. The NodeClaim keeps that ID, because Karpenter
// finds the Node by it. It becomes True when both are the same again. A NodeClaim without this
// condition has had no such contradiction.
const ConditionProviderIDUnchanged = "ProviderIDUnchanged"

// ReasonProviderIDChanged is the reason of ProviderIDUnchanged while it is False, and of the event.
const ReasonProviderIDChanged = "ProviderIDChanged"

// ReasonProviderIDShared is the reason of an event of NodeClaims that have one provider ID, and of the
// Node with this ID. Karpenter treats such a Node as if it had no NodeClaim.
const ReasonProviderIDShared = "ProviderIDShared"

// ConditionMachinesProgressing is False while NodeClaims of a template wait for Machines
// that Cluster API does not create or does not act on, with the reason Blocked or
// NoProgress and what Cluster API reports. It is Unknown, with the reason ObjectsNotReadable,
// while infrastructure or bootstrap objects of its Machines cannot be read. Ready does not
// depend on it.
const ConditionMachinesProgressing = "MachinesProgressing"

// Reasons of the conditions above while they are not True.
const (
	// ReasonObjectsNotReadable: objects of a kind cannot be listed in the management cluster,
	// because the operator lacks the right, or the conversion webhook of the kind does not
	// answer.
	ReasonObjectsNotReadable = "ObjectsNotReadable"
	// ReasonClusterNotFound: the served Cluster does not exist, and no deletion was recorded.
	ReasonClusterNotFound = "ClusterNotFound"
	// ReasonClusterDeleting: the Cluster is being deleted. Events of NodeClaims that are
	// deleted with it have the same reason.
	ReasonClusterDeleting = "ClusterDeleting"
	// ReasonClusterDeleted: the Cluster does not exist, because it was deleted. A Cluster that
	// clusterctl has moved to another management cluster was not deleted.
	ReasonClusterDeleted = "ClusterDeleted"
	// ReasonClusterPaused: spec.paused of the Cluster is true.
	ReasonClusterPaused = "ClusterPaused"
	// ReasonClusterUnreachable: the API server of the management or of the workload cluster does not
	// answer, or the operator's cache of it is behind. Launches and deletions wait. NodeClaims have this
	// reason, too, in their condition Launched.
	ReasonClusterUnreachable = "ClusterUnreachable"
	// ReasonClusterNotProvisioned: the Cluster has no infrastructure or control plane
	// yet.
	ReasonClusterNotProvisioned = "ClusterNotProvisioned"
	// ReasonReferenceMissing: a required reference is not set.
	ReasonReferenceMissing = "ReferenceMissing"
	// ReasonReferenceNotFound: the object of a reference does not exist.
	ReasonReferenceNotFound = "ReferenceNotFound"
	// ReasonReferenceUnusable: the operator has generated the MachineDeployment that
	// spec.template.from names, or it is being deleted.
	ReasonReferenceUnusable = "ReferenceUnusable"
	// ReasonReferenceKindUnusable: the kind of a reference is unknown, has no Cluster API
	// contract label, or is not a template.
	ReasonReferenceKindUnusable = "ReferenceKindUnusable"
	// ReasonVersionMissing: the kind of the bootstrap template needs a version, but
	// spec.template.spec.version is not set and the control plane reports none.
	ReasonVersionMissing = "VersionMissing"
	// ReasonVersionSkew: the version of the Machines does not fit the version of the
	// control plane.
	ReasonVersionSkew = "VersionSkew"
	// ReasonScalableResourceUnusable: the infrastructure of a MachinePool cannot create
	// or delete single Machines as Karpenter needs it, or another controller sets the
	// replicas of the MachinePool or of a discovered MachineDeployment.
	ReasonScalableResourceUnusable = "ScalableResourceUnusable"
	// ReasonNoInstanceTypes: the template has no instance types to offer.
	ReasonNoInstanceTypes = "NoInstanceTypes"
	// ReasonInstanceTypesInvalid: an instance type cannot be offered.
	ReasonInstanceTypesInvalid = "InstanceTypesInvalid"
	// ReasonTooManyOfferings: a list of instance types, or a template with all its lists, has more
	// offerings than the operator can hold.
	ReasonTooManyOfferings = "TooManyOfferings"
	// ReasonDiscoveryIncomplete: objects that discovery needs cannot be read, so that it is
	// unknown what else the template offers. What is known is offered.
	ReasonDiscoveryIncomplete = "DiscoveryIncomplete"
	// ReasonTaintsNotInNodePool: the Nodes of an offering join with a taint that no NodePool
	// of the template has.
	ReasonTaintsNotInNodePool = "TaintsNotInNodePool"
	// ReasonZonesUnknown: the Cluster has no failure domain for a zone.
	ReasonZonesUnknown = "ZonesUnknown"
	// ReasonSourcesConflict: two sources describe one instance type differently.
	ReasonSourcesConflict = "SourcesConflict"
	// ReasonPatchesFailed: a patch cannot be applied to its base template.
	ReasonPatchesFailed = "PatchesFailed"
	// ReasonTemplatesRejected: the API server does not accept a generated template,
	// MachineDeployment or MachinePool.
	ReasonTemplatesRejected = "TemplatesRejected"
	// ReasonNameTaken: an object has the name that an object for an offering would get, and was
	// generated from something else. NodeClaims have this reason, too, in their condition
	// MachineAvailable.
	ReasonNameTaken = "NameTaken"
	// ReasonSecretNotAllowed: the template, a patch or a base template names a Secret of
	// the management cluster that templates may not refer to.
	ReasonSecretNotAllowed = "SecretNotAllowed"
	// ReasonAdoptionNotAllowed: a MachineDeployment that discovery has found lacks the
	// annotation karpenter.cluster.x-k8s.io/adoptable.
	ReasonAdoptionNotAllowed = "AdoptionNotAllowed"
	// ReasonBaseTemplateNotAllowed: the template refers to a base template that the
	// operator's --allowed-base-templates does not contain, or to what was created for a
	// Machine.
	ReasonBaseTemplateNotAllowed = "BaseTemplateNotAllowed"
	// ReasonFieldNotAllowed: the template sets a label or annotation, or a patch sets a
	// field, by which Cluster API, Karpenter or the operator decide.
	ReasonFieldNotAllowed = "FieldNotAllowed"
	// ReasonCapacityDiffers: Nodes report a capacity that differs from the declared one.
	ReasonCapacityDiffers = "CapacityDiffers"
	// ReasonTaintMissing: Nodes have joined without the taint that Karpenter needs.
	ReasonTaintMissing = "TaintMissing"
	// ReasonNodeClaimsRemain: NodeClaims of a template that is being deleted exist.
	ReasonNodeClaimsRemain = "NodeClaimsRemain"
	// ReasonGeneratedObjectsRemain: objects that were generated from a template that is
	// being deleted exist.
	ReasonGeneratedObjectsRemain = "GeneratedObjectsRemain"
)

// Reasons of VersionReady while it is True.
const (
	// ReasonVersionSet: spec.template.spec.version sets the version.
	ReasonVersionSet = "VersionSet"
	// ReasonVersionOfMachineDeployment: Machines get the version of the MachineDeployment
	// that spec.template.from names.
	ReasonVersionOfMachineDeployment = "VersionOfMachineDeployment"
	// ReasonVersionOfControlPlane: Machines get the version of the control plane.
	ReasonVersionOfControlPlane = "VersionOfControlPlane"
	// ReasonVersionUnknown: Machines get no version, because the control plane reports
	// none.
	ReasonVersionUnknown = "VersionUnknown"
)

// ReasonNodesOutdated is the reason of NodesCurrent while it is False.
const ReasonNodesOutdated = "NodesOutdated"

// Reasons for the drift of a NodeClaim, which Karpenter shows in the condition Drifted.
const (
	// DriftVersion: new Machines get another Kubernetes version.
	DriftVersion = "VersionDrift"
	// DriftKubelet: spec.kubelet has changed.
	DriftKubelet = "KubeletDrift"
	// DriftInfrastructure: the content of the infrastructure template has changed for
	// the offering of the NodeClaim.
	DriftInfrastructure = "InfrastructureDrift"
	// DriftBootstrap: the content of the bootstrap template has changed for the offering
	// of the NodeClaim.
	DriftBootstrap = "BootstrapDrift"
	// DriftOfferingRemoved: the template no longer has the offering of the NodeClaim.
	DriftOfferingRemoved = "OfferingRemoved"
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
	dependents := []string{ConditionClusterReady, ConditionInfrastructureReady, ConditionBootstrapReady, ConditionVersionReady, ConditionInstanceTypesReady}
	if t.Spec.Template.From != nil {
		dependents = append(dependents, ConditionFromReady)
	}
	if !t.DeletionTimestamp.IsZero() {
		dependents = append(dependents, ConditionDeletable)
	}
	return status.NewReadyConditions(dependents...).For(t, opts...)
}

// ConditionInstanceTypesValid is the condition of an InstanceTypeCatalog that reports whether
// all of its instance types can be used. It is False with the reason InstanceTypesInvalid, and
// the message says what is wrong with the others.
const ConditionInstanceTypesValid = "InstanceTypesValid"

// GetConditions returns the conditions, for operatorpkg's status.Object.
func (c *InstanceTypeCatalog) GetConditions() []status.Condition {
	return c.Status.Conditions
}

// SetConditions sets the conditions, for operatorpkg's status.Object.
func (c *InstanceTypeCatalog) SetConditions(conditions []status.Condition) {
	c.Status.Conditions = conditions
}

// StatusConditions returns the set of conditions with Ready as its root, for
// operatorpkg's status.Object.
func (c *InstanceTypeCatalog) StatusConditions(opts ...status.ForOption) status.ConditionSet {
	return status.NewReadyConditions(ConditionInstanceTypesValid).For(c, opts...)
}
