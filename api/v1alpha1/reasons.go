// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Reasons of ClusterReady.
const (
	// ReasonClusterNotFound: the served Cluster does not exist, and no deletion was recorded.
	//   - In: ClusterReady=False
	//   - To do: create the Cluster, or correct the operator's --cluster-name and --cluster-namespace. If
	//     clusterctl has moved the Cluster, give the operator the kubeconfig of the other management cluster.
	//   - See: docs/guides/moving-clusters.md#move
	ReasonClusterNotFound = "ClusterNotFound"
	// ReasonClusterDeleting: the Cluster is being deleted. Nothing is launched, and the operator deletes NodeClaims
	// without a Machine. Events of these NodeClaims have the same reason.
	//   - In: ClusterReady=False
	//   - To do: wait until the Cluster is deleted. To launch Nodes again, let the operator serve another Cluster.
	//   - See: docs/operations.md#deleting-the-cluster
	ReasonClusterDeleting = "ClusterDeleting"
	// ReasonClusterDeleted: the Cluster does not exist, because it was deleted. A Cluster that clusterctl has moved to
	// another management cluster was not deleted.
	//   - In: ClusterReady=False
	//   - To do: delete the NodePools of the template, create the Cluster again, or let the operator serve another
	//     Cluster.
	//   - See: docs/operations.md#deleting-the-cluster
	ReasonClusterDeleted = "ClusterDeleted"
	// ReasonClusterPaused: spec.paused of the Cluster is true.
	//   - In: ClusterReady=False
	//   - To do: set it to false when the work on the Cluster has ended.
	//   - See: docs/operations.md#pause
	ReasonClusterPaused = "ClusterPaused"
	// ReasonClusterUnreachable: the API server of the management or of the workload cluster does not answer, or the
	// operator's cache of it is behind. Launches and deletions wait, and continue by themselves.
	//   - In: ClusterReady=False, Launched=Unknown
	//   - To do: check the API server that the message names, the network and the kubeconfig. The log of the
	//     operator has what fails.
	//   - See: docs/operations.md#outages
	ReasonClusterUnreachable = "ClusterUnreachable"
	// ReasonClusterNotProvisioned: the Cluster has no infrastructure or control plane yet.
	//   - In: ClusterReady=False
	//   - To do: wait. If it lasts, read the conditions of the Cluster.
	ReasonClusterNotProvisioned = "ClusterNotProvisioned"
)

// Reasons of references to other objects.
const (
	// ReasonReferenceMissing: a required reference is not set, or it comes from a MachineDeployment that cannot be
	// used.
	//   - In: InfrastructureReady=False, InfrastructureReady=Unknown, BootstrapReady=Unknown, VersionReady=Unknown
	//   - To do: set the field that the message names. If the condition is Unknown, correct what FromReady reports.
	ReasonReferenceMissing = "ReferenceMissing"
	// ReasonReferenceNotFound: the object of a reference does not exist, or belongs to another Cluster.
	//   - In: FromReady=False, InfrastructureReady=False, BootstrapReady=False, OfferingsValid=False,
	//     InstanceTypesReady=False, RemediationReady=False, status.invalidOfferings
	//   - To do: create the object, or correct the name. The message has both.
	ReasonReferenceNotFound = "ReferenceNotFound"
	// ReasonReferenceUnusable: the operator has generated the MachineDeployment that spec.template.from names, or it is
	// being deleted.
	//   - In: FromReady=False
	//   - To do: name another MachineDeployment.
	ReasonReferenceUnusable = "ReferenceUnusable"
	// ReasonReferenceKindUnusable: the kind of a reference is unknown, has no Cluster API contract label, is not a
	// template, or cannot be used for the scalable resource.
	//   - In: InfrastructureReady=False, BootstrapReady=False, OfferingsValid=False, InstanceTypesReady=False,
	//     RemediationReady=False
	//   - To do: name an object of a kind that the message describes, or install the provider.
	ReasonReferenceKindUnusable = "ReferenceKindUnusable"
)

// Reasons of what a template may refer to and set.
const (
	// ReasonSecretNotAllowed: the template, a patch or a base template names a Secret of the management cluster that
	// templates may not refer to.
	//   - In: BootstrapReady=False, OfferingsValid=False, InstanceTypesReady=False, status.invalidOfferings
	//   - To do: name another Secret, or ask the platform team to allow it. The message describes how.
	//   - See: docs/security.md#secrets
	ReasonSecretNotAllowed = "SecretNotAllowed"
	// ReasonBaseTemplateNotAllowed: the template refers to a base template that the operator's --allowed-base-templates
	// does not contain, that belongs to the control plane or to another Cluster, or that was created for a Machine.
	//   - In: InfrastructureReady=False, BootstrapReady=False, OfferingsValid=False, InstanceTypesReady=False,
	//     RemediationReady=False, status.invalidOfferings
	//   - To do: name another base template, or ask the platform team to allow it.
	//   - See: docs/security.md#base-templates
	ReasonBaseTemplateNotAllowed = "BaseTemplateNotAllowed"
	// ReasonFieldNotAllowed: the template sets a label or annotation, or a patch sets a field, by which Cluster API,
	// Karpenter or the operator decide.
	//   - In: OfferingsValid=False, InstanceTypesReady=False, status.invalidOfferings
	//   - To do: remove the label, annotation or patch, or set the field in the base template.
	//   - See: docs/security.md#reserved-labels-annotations-and-fields
	ReasonFieldNotAllowed = "FieldNotAllowed"
	// ReasonAdoptionNotAllowed: discovery has found a MachineDeployment that lacks the annotation
	// karpenter.cluster.x-k8s.io/adoptable, so templates may not scale it.
	//   - In: OfferingsValid=False, InstanceTypesReady=False
	//   - To do: ask a user of the management cluster to give it the annotation with the value true, or change the
	//     selector.
	//   - See: docs/guides/discovery.md#machinedeployments
	ReasonAdoptionNotAllowed = "AdoptionNotAllowed"
)

// Reasons of VersionReady.
const (
	// ReasonVersionMissing: the kind of the bootstrap template needs a version, but spec.template.spec.version is not
	// set and the control plane reports none.
	//   - In: VersionReady=False
	//   - To do: set spec.template.spec.version.
	//   - See: docs/guides/upgrades.md#which-version-new-machines-get
	ReasonVersionMissing = "VersionMissing"
	// ReasonVersionSkew: the version of the Machines does not fit the version of the control plane, so nothing is
	// launched.
	//   - In: VersionReady=False
	//   - To do: remove spec.template.spec.version, or set the version that the message names.
	//   - See: docs/guides/upgrades.md#which-version-new-machines-get
	ReasonVersionSkew = "VersionSkew"
	// ReasonVersionSet: spec.template.spec.version sets the version.
	//   - In: VersionReady=True
	//   - To do: nothing.
	ReasonVersionSet = "VersionSet"
	// ReasonVersionOfMachineDeployment: Machines get the version of the MachineDeployment that spec.template.from
	// names.
	//   - In: VersionReady=True
	//   - To do: nothing.
	ReasonVersionOfMachineDeployment = "VersionOfMachineDeployment"
	// ReasonVersionOfControlPlane: Machines get the version of the control plane.
	//   - In: VersionReady=True
	//   - To do: nothing.
	ReasonVersionOfControlPlane = "VersionOfControlPlane"
	// ReasonVersionUnknown: Machines get no version, because the control plane reports none.
	//   - In: VersionReady=True
	//   - To do: nothing, if the infrastructure or bootstrap template decides the version. Otherwise, set
	//     spec.template.spec.version.
	ReasonVersionUnknown = "VersionUnknown"
)

// Reasons of what a template and its catalogs offer.
const (
	// ReasonNoInstanceTypes: the template or catalog has no instance types to offer.
	//   - In: InstanceTypesReady=False
	//   - To do: add instance types to the catalog, name a catalog in spec.catalogRefs, or correct the selectors of
	//     spec.discovery.
	ReasonNoInstanceTypes = "NoInstanceTypes"
	// ReasonCapacityNotCounted: the objects that capacityFrom of an offering names cannot be counted now. Its
	// offerings are not closed for that reason.
	//   - In: OfferingsValid=False
	//   - To do: correct the expression, install the kind, or grant the right that the message names.
	//   - See: docs/guides/inventory.md#if-something-is-wrong
	ReasonCapacityNotCounted = "CapacityNotCounted"
	// ReasonInstanceTypesInvalid: an instance type cannot be offered, because it has a mistake.
	//   - In: OfferingsValid=False, InstanceTypesReady=False, InstanceTypesValid=False
	//   - To do: correct the instance type, object or selector that the message names.
	ReasonInstanceTypesInvalid = "InstanceTypesInvalid"
	// ReasonTooManyOfferings: a catalog, or a template with all its catalogs, has more offerings than the
	// 50,000 that the operator can hold. A list that does not fit is not used.
	//   - In: OfferingsValid=False, InstanceTypesReady=False, InstanceTypesValid=False
	//   - To do: import fewer types or zones, or refer to fewer catalogs in each of several templates.
	//   - See: docs/guides/catalogs.md#flags
	ReasonTooManyOfferings = "TooManyOfferings"
	// ReasonAdjustmentsInvalid: an adjustment of prices applies to no offering of its catalog, or has a mistake.
	//   - In: PriceAdjustmentsValid=False
	//   - To do: correct the requirements of the adjustment that the message names, or remove it.
	//   - See: docs/guides/prices.md#what-is-wrong
	ReasonAdjustmentsInvalid = "AdjustmentsInvalid"
	// ReasonDiscoveryIncomplete: objects that discovery needs cannot be read, so that it is unknown what else the
	// template offers. What is known is offered.
	//   - In: OfferingsValid=False, InstanceTypesReady=False
	//   - To do: give the operator the right to read the objects, or repair what the message names.
	//   - See: docs/guides/discovery.md#objects-that-cannot-be-read
	ReasonDiscoveryIncomplete = "DiscoveryIncomplete"
	// ReasonMachineDeploymentChanged: a user has changed a generated MachineDeployment so that Cluster API gives it another
	// MachineSet, and Machines are in a MachineSet that is not the current one. The operator does not scale it, and
	// Karpenter does not choose its offering.
	//   - In: OfferingsValid=False
	//   - To do: undo the change that the message names. If Machines were created after the change, the message then
	//     names their MachineSet: delete them.
	//   - See: docs/troubleshooting.md#a-machinedeployment-that-was-changed
	ReasonMachineDeploymentChanged = "MachineDeploymentChanged"
	// ReasonTaintsNotInNodePool: the Nodes of an offering join with a taint that no NodePool of the template has, so
	// Karpenter does not choose it.
	//   - In: OfferingsValid=False
	//   - To do: add the taint to the NodePool that the message names, or to another one for such Nodes.
	//   - See: docs/guides/discovery.md#taints
	ReasonTaintsNotInNodePool = "TaintsNotInNodePool"
	// ReasonZonesUnknown: the Cluster has no failure domain for the zones of some offerings, and these are not offered.
	//   - In: OfferingsValid=False, InstanceTypesReady=False
	//   - To do: correct the zones, or map them in spec.failureDomains. The message lists the failure domains of
	//     the Cluster.
	ReasonZonesUnknown = "ZonesUnknown"
	// ReasonSourcesConflict: two sources describe one instance type differently, or both have the same offering.
	//   - In: OfferingsValid=False, InstanceTypesReady=False
	//   - To do: correct one of the two, or remove it. The message describes the difference, and what is offered
	//     meanwhile.
	//   - See: docs/guides/discovery.md#several-sources
	ReasonSourcesConflict = "SourcesConflict"
	// ReasonPatchesFailed: a patch cannot be applied to its base template.
	//   - In: OfferingsValid=False, InstanceTypesReady=False, status.invalidOfferings
	//   - To do: correct the patch that the message names.
	//   - See: docs/guides/patches.md#when-a-patch-is-wrong
	ReasonPatchesFailed = "PatchesFailed"
	// ReasonTemplatesRejected: the API server does not accept a generated template, MachineDeployment or MachinePool in
	// a dry run, or has not answered.
	//   - In: OfferingsValid=False, InstanceTypesReady=False, status.invalidOfferings
	//   - To do: read the message, which repeats the answer. Correct the patch or, for a MachineDeployment or
	//     MachinePool, spec.template.
	//   - See: docs/guides/patches.md#when-a-patch-is-wrong
	ReasonTemplatesRejected = "TemplatesRejected"
	// ReasonNameTaken: an object has the name that an object for an offering would get, and was generated from
	// something else. Names end in a hash, so this is rare, unless a user has changed or copied the object or its
	// labels.
	//   - In: OfferingsValid=False, InstanceTypesReady=False, status.invalidOfferings, MachineAvailable=False
	//   - To do: delete the object that the message names, or use a KarpenterMachineTemplate of another name.
	//     Nothing is launched with the offering meanwhile.
	ReasonNameTaken = "NameTaken"
	// ReasonObjectsNotReadable: objects of a kind cannot be listed in the management cluster, because the operator
	// lacks the right, or its conversion webhook does not answer. If these are objects of Machines,
	// Machines are launched, and only launchTimeoutSeconds shows that one failed.
	//   - In: MachinesProgressing=Unknown, OfferingsValid=False, InstanceTypesReady=False, RemediationReady=False,
	//     status.invalidOfferings
	//   - To do: give the operator the right, or repair the webhook.
	//   - See: docs/installation/helm.md#rights
	ReasonObjectsNotReadable = "ObjectsNotReadable"
)

// Reasons of Deletable.
const (
	// ReasonNodeClaimsRemain: NodeClaims of a template that is being deleted exist.
	//   - In: Deletable=False
	//   - To do: delete the NodePools that use the template, or let them use another template.
	//   - See: docs/guides/uninstall.md#remove-one-template
	ReasonNodeClaimsRemain = "NodeClaimsRemain"
	// ReasonGeneratedObjectsRemain: objects that were generated from a template that is being deleted exist. The
	// operator deletes them.
	//   - In: Deletable=False
	//   - To do: wait. If it lasts, read the message and the log of the operator.
	//   - See: docs/guides/uninstall.md#remove-one-template
	ReasonGeneratedObjectsRemain = "GeneratedObjectsRemain"
)

// Reasons of RemediationReady.
const (
	// ReasonRequestsNotAllowed: the operator lacks the right to create, read or delete remediation requests, so unhealthy
	// Nodes are replaced.
	//   - In: RemediationReady=False
	//   - To do: give the operator the rights that the message names.
	//   - See: docs/installation/helm.md#rights
	ReasonRequestsNotAllowed = "RequestsNotAllowed"
)
