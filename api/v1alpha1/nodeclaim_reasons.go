// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Reasons of NodeClaims and offerings whose machine could not be launched. Events have them, too.
const (
	// ReasonInsufficientCapacity: the infrastructure has no capacity for such a machine at the moment.
	//   - In: MachineAvailable=False, status.unavailableOfferings
	//   - To do: add offerings to the template: other zones, instance types or capacity types. Otherwise, wait.
	//   - See: docs/failures.md
	ReasonInsufficientCapacity = "InsufficientCapacity"
	// ReasonQuotaExceeded: a quota of the account or project is used up.
	//   - In: MachineAvailable=False, status.unavailableOfferings
	//   - To do: raise the quota, or add other instance types to the template.
	//   - See: docs/failures.md
	ReasonQuotaExceeded = "QuotaExceeded"
	// ReasonMachineFailed: the provider stopped retrying for another reason.
	//   - In: MachineAvailable=False, status.unavailableOfferings
	//   - To do: read the message. Usually the infrastructure or bootstrap template is wrong.
	//   - See: docs/failures.md
	ReasonMachineFailed = "MachineFailed"
	// ReasonLaunchTimeout: the Machine was not created or got no provider ID within launchTimeoutSeconds.
	//   - In: MachineAvailable=False, status.unavailableOfferings
	//   - To do: read the conditions of the Machine and of its infrastructure and bootstrap objects. For slow
	//     hardware, raise launchTimeoutSeconds.
	//   - See: docs/failures.md, docs/operations.md#slow-infrastructure
	ReasonLaunchTimeout = "LaunchTimeout"
	// ReasonScalableResourceUnusable: the infrastructure of a MachinePool cannot create or delete single Machines as
	// Karpenter needs it, or another controller sets the replicas of the MachinePool or of a discovered
	// MachineDeployment.
	//   - In: InfrastructureReady=False, OfferingsValid=False, InstanceTypesReady=False, MachineAvailable=False,
	//     status.unavailableOfferings
	//   - To do: read the message, which names what the provider lacks, or the other controller.
	//   - See: docs/guides/machinepools.md#what-is-refused
	ReasonScalableResourceUnusable = "ScalableResourceUnusable"
	// ReasonLimitReached: many NodeClaims were launched at the same time, and maxMachines, a reservation or capacityFrom is used up.
	// The oldest NodeClaims got their Machines, and the operator deletes this one, or it
	// waits if it has no NodePool.
	//   - In: MachineAvailable=False
	//   - To do: nothing, because Karpenter decides again. To get more Machines, raise the limit.
	ReasonLimitReached = "LimitReached"
	// ReasonRegistrationTimeout: the Machine had its provider ID, and no Node had joined with it when Karpenter gave up on
	// the NodeClaim after 15 minutes. Events of the NodeClaim and of its template have the same reason.
	//   - In: status.unavailableOfferings
	//   - To do: read the log of cloud-init and of the kubelet on the next instance. The Node may not reach the API server,
	//     its bootstrap may be wrong, or it may have another provider ID.
	//   - See: docs/failures.md#nodes-that-do-not-join
	ReasonRegistrationTimeout = "RegistrationTimeout"
	// ReasonInterrupted: a termination handler has announced the end of an instance of the offering. Events of the
	// Node, its NodeClaim and their template have the same reason.
	//   - In: status.unavailableOfferings
	//   - To do: nothing, because the operator deletes the NodeClaim. A spot or reserved offering is
	//     unavailable for 3 to 30 minutes. Add offerings that the Pods can use instead.
	//   - See: docs/guides/repair-and-interruption.md#signals
	ReasonInterrupted = "Interrupted"
	// ReasonOfferingsUnavailable: status.unavailableOfferings lists offerings that Karpenter does not choose at the
	// moment.
	//   - In: OfferingsAvailable=False
	//   - To do: read the reasons there. The offerings become available again by themselves.
	//   - See: docs/failures.md#what-the-operator-does
	ReasonOfferingsUnavailable = "OfferingsUnavailable"
)

// Reasons of NodeClaims that wait.
const (
	// ReasonBlocked: Cluster API reports why it creates no Machine at the moment, such as a preflight check that fails.
	// The NodeClaim waits, and its offering stays available. Events have this reason, too.
	//   - In: MachineAvailable=Unknown, MachinesProgressing=False
	//   - To do: read the message, which has what Cluster API reports.
	//   - See: docs/failures.md#what-is-not-a-failure
	ReasonBlocked = "Blocked"
	// ReasonNoProgress: Cluster API or a provider does not act on what the NodeClaim waits for. The NodeClaim waits,
	// and its offering stays available. Events have this reason, too.
	//   - In: MachineAvailable=Unknown, MachinesProgressing=False
	//   - To do: check that the controllers run which the message names.
	//   - See: docs/failures.md#what-is-not-a-failure
	ReasonNoProgress = "NoProgress"
	// ReasonResumed: Cluster API acts again. launchTimeoutSeconds counts from the transition on.
	//   - In: MachineAvailable=Unknown
	//   - To do: nothing.
	ReasonResumed = "Resumed"
	// ReasonRejected: no scalable resource can be created or scaled for the NodeClaim, because the API server or a
	// webhook rejects it. The launch fails if that does not change within launchTimeoutSeconds.
	//   - In: MachineAvailable=Unknown
	//   - To do: read the message, which repeats the answer, and correct the template.
	//   - See: docs/failures.md#what-is-not-a-failure
	ReasonRejected = "Rejected"
	// ReasonMachineProvisioned: the Machine of the NodeClaim has its provider ID.
	//   - In: MachineReady=True
	//   - To do: nothing.
	ReasonMachineProvisioned = "MachineProvisioned"
	// ReasonWaitingForBootstrap: a Machine has no provider ID after 3 minutes, because its bootstrap data is missing.
	//   - In: MachineReady=False
	//   - To do: read the message, which has what the bootstrap object reports.
	//   - See: docs/failures.md#what-a-slow-machine-waits-for
	ReasonWaitingForBootstrap = "WaitingForBootstrap"
	// ReasonWaitingForInfrastructure: a Machine has no provider ID after 3 minutes. The launch fails if that does not
	// change within launchTimeoutSeconds.
	//   - In: MachineReady=False
	//   - To do: read the message, which has what the infrastructure reports. For slow hardware, wait.
	//   - See: docs/failures.md#what-a-slow-machine-waits-for
	ReasonWaitingForInfrastructure = "WaitingForInfrastructure"
	// ReasonWaitingForNode: a Machine has had its provider ID for 3 minutes, and no Node has joined with it.
	//   - In: MachineReady=False
	//   - To do: read the log of cloud-init and of the kubelet on the instance. The Node may not reach the API server, its
	//     bootstrap may have failed, or it may have another provider ID.
	//   - See: docs/failures.md#what-a-slow-machine-waits-for
	ReasonWaitingForNode = "WaitingForNode"
	// ReasonNodeClassReadinessUnknown: the operator has not examined the template in its present form.
	//   - In: Launched=Unknown
	//   - To do: wait. If it lasts, check that the operator runs.
	ReasonNodeClassReadinessUnknown = "NodeClassReadinessUnknown"
	// ReasonTemplateUnusable: the operator cannot generate what the NodeClaim needs from the template.
	//   - In: Launched=Unknown
	//   - To do: correct what the message names. Karpenter tries again.
	ReasonTemplateUnusable = "TemplateUnusable"
)

// Reasons of Nodes.
const (
	// ReasonProviderIDChanged: the provider, or a user, has given the Machine another provider ID than that of its
	// Node. The Node continues to run, but Cluster API no longer finds it. An event has the same reason.
	//   - In: ProviderIDUnchanged=False
	//   - To do: correct the ID of the infrastructure machine. If the new ID is right, delete the NodeClaim:
	//     Karpenter drains and replaces its Node.
	ReasonProviderIDChanged = "ProviderIDChanged"
	// ReasonCapacityDiffers: Nodes report a capacity that differs by more than 5 percent from the declared one, or other
	// volumes or devices.
	//   - In: CapacityAccurate=False
	//   - To do: correct capacity, spec.kubelet or the catalog, so that the first Node of a type is planned
	//     correctly, too. The message has both values.
	ReasonCapacityDiffers = "CapacityDiffers"
	// ReasonTaintMissing: Nodes have joined without the taint karpenter.sh/unregistered:NoExecute, so Pods could run on
	// them too early.
	//   - In: NodesTainted=False
	//   - To do: let the bootstrap configuration register Nodes with the taint. The condition becomes True when the
	//     NodeClaims of these Nodes no longer exist.
	//   - See: docs/guides/patches.md#bootstrap-without-kubeadm
	ReasonTaintMissing = "TaintMissing"
	// ReasonNodesOutdated: Nodes are not what the template generates now.
	//   - In: NodesCurrent=False
	//   - To do: nothing, because Karpenter replaces them within the disruption budgets of their NodePools. If the template
	//     has spec.rollout, RolloutProgressing reports which of them are replaced now.
	//   - See: docs/guides/upgrades.md#keep-outdated-nodes
	ReasonNodesOutdated = "NodesOutdated"
)

// Reasons of RolloutProgressing.
const (
	// ReasonRolloutCanary: the first outdated Nodes are replaced.
	//   - In: RolloutProgressing=True
	//   - To do: nothing.
	//   - See: docs/guides/rollouts.md#steps
	ReasonRolloutCanary = "Canary"
	// ReasonRolloutSoaking: the new Nodes are observed, and no outdated Node is replaced.
	//   - In: RolloutProgressing=True
	//   - To do: nothing.
	//   - See: docs/guides/rollouts.md#steps
	ReasonRolloutSoaking = "Soaking"
	// ReasonRolloutRolling: Karpenter replaces all outdated Nodes within the disruption budgets of their NodePools.
	//   - In: RolloutProgressing=True
	//   - To do: nothing.
	//   - See: docs/guides/rollouts.md#steps
	ReasonRolloutRolling = "Rolling"
	// ReasonRolloutComplete: no Node is outdated.
	//   - In: RolloutProgressing=True
	//   - To do: nothing.
	ReasonRolloutComplete = "RolloutComplete"
	// ReasonRolloutPaused: spec.rollout.paused is true, so no outdated Node is replaced.
	//   - In: RolloutProgressing=Unknown
	//   - To do: set it to false, or run kubectl karpenter-capi rollout resume.
	//   - See: docs/guides/rollouts.md#pause-and-resume
	ReasonRolloutPaused = "RolloutPaused"
	// ReasonRolloutStopped: a new Node has failed, so no outdated Node is replaced any more.
	//   - In: RolloutProgressing=False
	//   - To do: correct the template, or run kubectl karpenter-capi rollout undo. If the template is not the cause, run
	//     kubectl karpenter-capi rollout resume.
	//   - See: docs/guides/rollouts.md#when-a-rollout-stops
	ReasonRolloutStopped = "RolloutStopped"
)

// Reasons for the drift of a NodeClaim, which Karpenter shows in the condition Drifted.
const (
	// DriftVersion: new Machines get another Kubernetes version.
	//   - In: Drifted=True
	//   - To do: nothing, because Karpenter replaces the Node within the disruption budgets of its NodePool.
	DriftVersion = "VersionDrift"
	// DriftKubelet: spec.kubelet has changed.
	//   - In: Drifted=True
	//   - To do: nothing, because Karpenter replaces the Node within the disruption budgets of its NodePool.
	DriftKubelet = "KubeletDrift"
	// DriftInfrastructure: the content of the infrastructure template has changed for the offering of the NodeClaim.
	//   - In: Drifted=True
	//   - To do: nothing, because Karpenter replaces the Node within the disruption budgets of its NodePool.
	DriftInfrastructure = "InfrastructureDrift"
	// DriftBootstrap: the content of the bootstrap template has changed for the offering of the NodeClaim.
	//   - In: Drifted=True
	//   - To do: nothing, because Karpenter replaces the Node within the disruption budgets of its NodePool.
	DriftBootstrap = "BootstrapDrift"
	// DriftOfferingRemoved: the template no longer has the offering of the NodeClaim.
	//   - In: Drifted=True
	//   - To do: nothing, because Karpenter replaces the Node within the disruption budgets of its NodePool.
	DriftOfferingRemoved = "OfferingRemoved"
)

// ReasonMachineLinked is the reason of an event of a NodeClaim that has got a Machine.
const ReasonMachineLinked = "MachineLinked"

// ReasonProviderIDSet is the reason of an event of a NodeClaim that has got the provider ID of its Machine. It is
// published with --all-events only, because the condition MachineReady shows the same.
const ReasonProviderIDSet = "ProviderIDSet"

// ReasonRemediationRequested is the reason of an event of a NodeClaim for whose Machine the operator has created a
// remediation request.
const ReasonRemediationRequested = "RemediationRequested"

// ReasonNodePoolNotReady is the reason of an event of a Pod that waits, and could only run on Nodes of NodePools that
// launch nothing, because they are not ready.
const ReasonNodePoolNotReady = "NodePoolNotReady"

// ReasonProviderIDShared is the reason of an event of NodeClaims that have one provider ID, and of the
// Node with this ID. Karpenter treats such a Node as if it had no NodeClaim.
const ReasonProviderIDShared = "ProviderIDShared"
