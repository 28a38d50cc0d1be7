// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "github.com/awslabs/operatorpkg/status"

// The comments of the conditions here, and of the reasons in reasons.go and nodeclaim_reasons.go, are the source of
// docs/reference/conditions.md. hack/docs describes their form, and tests that each reason that the operator sets is there.

// ConditionReady reports whether Karpenter can launch NodeClaims with a template, or whether a catalog has no mistake.
// While a template is not Ready, Karpenter launches nothing for its NodePools.
//   - On: KarpenterMachineTemplate, InstanceTypeCatalog
//   - True: all conditions that it depends on are True.
//   - False: one of them is False. On a template, the reason is that of the first of them, and the message has the
//     messages of all. On a catalog, the reason is UnhealthyDependents.
//   - Unknown: the operator has not examined the object in its present form. The reason is ReconcilingDependents.
const ConditionReady = status.ConditionReady

// Condition types of a KarpenterMachineTemplate. Ready is True when all of them are True.
const (
	// ConditionClusterReady reports whether Machines can be created in the Cluster that this operator serves. Ready
	// depends on it.
	//   - On: KarpenterMachineTemplate
	//   - True: the Cluster exists, has its infrastructure and control plane, and is neither paused nor being deleted.
	//   - False: no Machines can be created in the Cluster.
	//   - Unknown: not determined yet.
	ConditionClusterReady = "ClusterReady"

	// ConditionFromReady reports whether the MachineDeployment that spec.template.from names can be used. Ready depends
	// on it. A template without from does not have this condition.
	//   - On: KarpenterMachineTemplate
	//   - True: the template takes what the MachineDeployment has. status.from identifies it.
	//   - False: the MachineDeployment cannot be used. Nodes and generated objects stay, and nothing is launched.
	//   - Unknown: not determined yet.
	ConditionFromReady = "FromReady"

	// ConditionInfrastructureReady reports whether every infrastructure template that the template and its own instance
	// types refer to can be used. Ready depends on it. For MachinePools, the infrastructure must also support
	// what Karpenter needs. OfferingsValid reports what types of catalogs refer to.
	//   - On: KarpenterMachineTemplate
	//   - True: all of them exist, and Cluster API can use their kinds.
	//   - False: one of them cannot be used.
	//   - Unknown: not determined yet, or the reference comes from a MachineDeployment that cannot be used.
	ConditionInfrastructureReady = "InfrastructureReady"

	// ConditionBootstrapReady reports whether the bootstrap template can be used. Ready depends on it.
	//   - On: KarpenterMachineTemplate
	//   - True: it exists, and has what its kind needs. The operator does not look up a Secret.
	//   - False: the bootstrap template or the Secret cannot be used.
	//   - Unknown: not determined yet, or the reference comes from a MachineDeployment that cannot be used.
	ConditionBootstrapReady = "BootstrapReady"

	// ConditionVersionReady reports which Kubernetes version new Machines get. Ready depends on it.
	//   - On: KarpenterMachineTemplate
	//   - True: new Machines get the version of the message. The reason shows where it comes from.
	//   - False: Cluster API or Kubernetes does not allow the version in the Cluster, or a version is missing.
	//   - Unknown: not determined yet, or the template follows a MachineDeployment that cannot be used.
	ConditionVersionReady = "VersionReady"

	// ConditionInstanceTypesReady reports whether at least one instance type can be offered. Ready depends on it.
	//   - On: KarpenterMachineTemplate, InstanceTypeCatalog
	//   - True: at least one can be offered. OfferingsValid of a template and InstanceTypesValid of a catalog report
	//     whether all can.
	//   - False: none can be offered.
	//   - Unknown: not determined yet.
	ConditionInstanceTypesReady = "InstanceTypesReady"
)

// ConditionDeletable reports what the deletion of a template waits for. Ready depends on it. A template that is not
// being deleted does not have this condition.
//   - On: KarpenterMachineTemplate
//   - True: never, because the template no longer exists then.
//   - False: NodeClaims use the template, or objects that were generated from it exist.
//   - Unknown: not determined yet.
const ConditionDeletable = "Deletable"

// ConditionOfferingsAvailable reports whether all offerings of a template are available. Ready does not depend on it,
// because the other offerings can be launched.
//   - On: KarpenterMachineTemplate
//   - True: all offerings are available.
//   - False: offerings have failed or were interrupted, and wait until they can be chosen again.
//   - Unknown: never.
const ConditionOfferingsAvailable = "OfferingsAvailable"

// ConditionOfferingsValid reports whether everything that a template, its catalogs and its discovery describe can be
// created. Ready does not depend on it, because the other offerings can be launched.
//   - On: KarpenterMachineTemplate
//   - True: every instance type is correct, no two sources contradict each other, and the API server accepts every
//     generated template.
//   - False: something cannot be created. The reason is that of the first problem, and the message has all problems.
//   - Unknown: never.
const ConditionOfferingsValid = "OfferingsValid"

// ConditionCapacityAccurate reports whether Nodes have the capacity, volumes and devices that are declared for their
// instance type. Ready does not depend on it.
//   - On: KarpenterMachineTemplate
//   - True: all Nodes report the declared capacity, within 5 percent, and the declared volumes and devices.
//   - False: Nodes report something else. Karpenter uses what they report.
//   - Unknown: never.
const ConditionCapacityAccurate = "CapacityAccurate"

// ConditionNodesTainted reports whether the template's Nodes join with the taint karpenter.sh/unregistered:NoExecute.
// Without it, Pods can run on them before Karpenter has set their labels and taints. Ready does not depend on it.
//   - On: KarpenterMachineTemplate
//   - True: all Nodes of the template have joined with it.
//   - False: Nodes have joined without it, and their NodeClaims exist.
//   - Unknown: never.
const ConditionNodesTainted = "NodesTainted"

// ConditionNodesCurrent reports whether all Nodes of a template are what the template generates now. Ready does not
// depend on it. It stays as it is while that cannot be determined.
//   - On: KarpenterMachineTemplate
//   - True: all of them are.
//   - False: Nodes are outdated. The message counts them by the reason of their condition Drifted.
//   - Unknown: never.
const ConditionNodesCurrent = "NodesCurrent"

// ConditionRolloutProgressing reports how far the rollout of the last change of a template is. A template without
// spec.rollout does not have this condition. Ready does not depend on it.
//   - On: KarpenterMachineTemplate
//   - True: the rollout replaces outdated Nodes, observes new ones, or is complete. The reason is its step.
//   - False: the rollout has stopped, because a new Node has failed. The message names its NodeClaim.
//   - Unknown: the rollout is paused.
const ConditionRolloutProgressing = "RolloutProgressing"

// ConditionRemediationReady reports whether Karpenter restarts the machines of unhealthy Nodes before it replaces the
// Nodes. A template without spec.remediation does not have this condition. Ready does not depend on it.
//   - On: KarpenterMachineTemplate
//   - True: a remediation request can be created from the template that spec.remediation names. Karpenter restarts machines
//     if its feature gate NodeRepair is on.
//   - False: no request can be created, so unhealthy Nodes are replaced.
//   - Unknown: never.
const ConditionRemediationReady = "RemediationReady"

// ConditionMachinesProgressing reports whether Cluster API acts on what NodeClaims of a template wait for. Ready does
// not depend on it.
//   - On: KarpenterMachineTemplate
//   - True: no NodeClaim waits for Cluster API to act.
//   - False: NodeClaims wait for Machines that Cluster API does not create or does not act on. The message has what
//     Cluster API reports for the oldest of them.
//   - Unknown: infrastructure or bootstrap objects of Machines cannot be read.
const ConditionMachinesProgressing = "MachinesProgressing"

// ConditionInstanceTypesValid reports whether all instance types of a catalog can be used. Ready does not
// depend on it, because the others can be used.
//   - On: InstanceTypeCatalog
//   - True: all of them can be used.
//   - False: some cannot be used, and the message describes why. The others are offered.
//   - Unknown: not determined yet.
const ConditionInstanceTypesValid = "InstanceTypesValid"

// ConditionPriceAdjustmentsValid reports whether all adjustments in spec.pricing of a catalog have an effect. Ready does
// not depend on it, because the others apply. A catalog without adjustments does not have this condition.
//   - On: InstanceTypeCatalog
//   - True: each of them applies to at least one offering.
//   - False: some apply to no offering, and the message describes why. The others apply.
//   - Unknown: not determined yet.
const ConditionPriceAdjustmentsValid = "PriceAdjustmentsValid"

// ConditionMachineAvailable reports whether the infrastructure can provide a machine for a NodeClaim. A NodeClaim
// without this condition has had no failure, and Cluster API has always acted on what it waits for.
//   - On: NodeClaim
//   - True: the NodeClaim has its machine, after a wait or a failure.
//   - False: the infrastructure could not provide a machine. The operator deletes the NodeClaim.
//   - Unknown: the NodeClaim waits for Cluster API.
const ConditionMachineAvailable = "MachineAvailable"

// ConditionMachineReady reports how far the Machine of a NodeClaim is. The message names the Machine. A NodeClaim without
// this condition has no Machine, or one that has had no provider ID for less than 3 minutes.
//   - On: NodeClaim
//   - True: the Machine has its provider ID. If its Node was missing for more than 3 minutes, it has registered.
//   - False: the Machine takes longer than usual. The message has what its infrastructure or bootstrap reports.
//   - Unknown: never.
const ConditionMachineReady = "MachineReady"

// ConditionProviderIDUnchanged reports whether the Machine of a NodeClaim has the provider ID with which its Node was
// registered. Karpenter finds the Node by that ID, so the NodeClaim keeps it. A NodeClaim without this condition has
// had no such contradiction.
//   - On: NodeClaim
//   - True: both are the same again.
//   - False: the Machine has another provider ID.
//   - Unknown: never.
const ConditionProviderIDUnchanged = "ProviderIDUnchanged"

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
	return status.NewReadyConditions(ConditionInstanceTypesReady).For(c, opts...)
}
