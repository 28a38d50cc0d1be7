// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"encoding/json"
	"os"
	"strings"
)

// Fact is one fact about Cluster API.
type Fact struct {
	// Name is the name of the check.
	Name string
	// Text is what holds.
	Text string
	// Home is the package or the page that relies on it.
	Home string
	// Differs is what the operator does with minor versions, such as v1.13, for which it does not hold.
	Differs map[string]string
}

// DiffersIn returns what the operator does with a version for which the fact does not hold; empty if it should hold.
func (f Fact) DiffersIn(version string) string {
	return f.Differs[version[:strings.LastIndex(version, ".")]]
}

// Facts are all facts, in the order of the table in docs/compatibility.md.
var Facts = []Fact{
	{
		Name: "LeavingMachinesCount", Home: "internal/planner",
		Text: "A MachineSet compares its replicas with all its Machines, those that are being deleted included: lower replicas delete no other Machine, and create none",
	},
	{
		Name: "ReplacedWhenGone", Home: "internal/planner",
		Text: "A MachineSet replaces a deleted Machine when it no longer exists, and not before",
	},
	{
		Name: "MarkedFirst", Home: "internal/lifecycle",
		Text: "Lower replicas delete a Machine with the annotation `delete-machine` before one without a Node",
	},
	{
		Name: "WithoutNodeNext", Home: "internal/planner",
		Text: "Then they delete a Machine without a Node, before a newer one with a Node",
	},
	{
		Name: "NewestWithNode", Home: "internal/generate",
		Text: "With the order `Newest`, they then delete the newest Machine with a Node",
	},
	{
		Name: "EqualWithoutNode", Home: "test/harness/model",
		Text: "Among Machines without a Node, their names decide",
	},
	{
		Name: "ObservedAfterActing", Home: "internal/snapshot",
		Text: "When `observedGeneration` of a MachineSet is current, it has created or deleted the Machines",
	},
	{
		Name: "FailureStaysBehind", Home: "internal/snapshot",
		Text: "If the API server rejects a Machine, `observedGeneration` stays behind, and the deprecated condition `MachinesCreated` has the error",
	},
	{
		Name: "BlockedByTemplate", Home: "internal/snapshot",
		Text: "Without its infrastructure template, a MachineSet creates no Machines, and its condition `ScalingUp` says `is blocked because`",
	},
	{
		Name: "BlockedByPreflight", Home: "internal/planner",
		Text: "While its control plane is upgraded, a MachineSet creates no Machines and says so in `ScalingUp`, and still deletes Machines",
	},
	{
		Name: "BlockedByVersion", Home: "internal/version",
		Text: "It creates no Machines whose version is newer than the control plane, or more than three minor versions older",
	},
	{
		Name: "SkippedByAnnotation", Home: "internal/version",
		Text: "The annotation `skip-preflight-checks` of a MachineDeployment skips these checks",
	},
	{
		Name: "SkippedByTemplate", Home: "internal/version",
		Text:    "The annotation `skip-preflight-checks` of its bootstrap template skips them, too",
		Differs: map[string]string{"v1.11": skippedOnlyBySet, "v1.12": skippedOnlyBySet, "v1.13": skippedOnlyBySet},
	},
	{
		Name: "RaisedInSteps", Home: "internal/controller/scalableresource",
		Text: "While Machines are being deleted, a MachineDeployment raises its MachineSet only in the steps of the model",
	},
	{
		Name: "PassedOnStays", Home: "internal/controller/scalableresource",
		Text: "A MachineDeployment does not lower a MachineSet that was raised to its own replicas",
	},
	{
		Name: "OnDeleteKeepsMachines", Home: "internal/scalable",
		Text: "With `OnDelete`, a changed template keeps Machines in the older MachineSet, which gets `disable-machine-create`, and undoing the change makes it the current one again",
	},
	{
		Name: "ChangedInPlace", Home: "internal/generate",
		Text: "Labels, annotations, readiness gates, timeouts of the deletion and `minReadySeconds` reach existing Machines without another MachineSet",
	},
	{
		Name: "AcceptedUnchanged", Home: "internal/generate",
		Text: "The webhooks add no label, annotation, finalizer or selector to a generated MachineDeployment",
	},
	{
		Name: "DeletedSetCreatesNothing", Home: "internal/snapshot",
		Text: "A MachineSet that is being deleted creates nothing, and its MachineDeployment creates the next one when its Machines no longer exist",
	},
	{
		Name: "DeletedDeploymentCreatesNothing", Home: "internal/snapshot",
		Text: "A MachineDeployment that is being deleted deletes its Machines, and creates nothing",
	},
	{
		Name: "DrainHookWithNode", Home: "internal/lifecycle",
		Text: "A pre-drain hook blocks the deletion of a Machine with a Node",
	},
	{
		Name: "DrainHookWithoutNode", Home: "internal/lifecycle",
		Text: "A pre-drain hook does not block the deletion of a Machine without a Node",
	},
	{
		Name: "TerminateHook", Home: "internal/lifecycle",
		Text: "A pre-terminate hook blocks the deletion of the infrastructure object, also without a Node",
	},
	{
		Name: "ClusterDeletion", Home: "internal/controller/clusterdeletion",
		Text: "In a Cluster that is being deleted, pre-drain hooks are ignored, and pre-terminate hooks block",
	},
	{
		Name: "DrainEnds", Home: "internal/lifecycle",
		Text: "The annotation `exclude-node-draining` ends a drain that a PodDisruptionBudget blocks",
	},
	{
		Name: "InfrastructureDeleted", Home: "internal/failure",
		Text: "If the infrastructure object of a Machine with a Node is deleted, `InfrastructureReady` is False with the reason `Deleted`",
	},
	{
		Name: "OrphanStays", Home: "internal/snapshot",
		Text: "If the infrastructure object of a Machine without a provider ID is deleted, the reason is `ObjectDoesNotExist`, and neither the Machine nor its MachineSet does anything about it",
	},
	{
		Name: "NodeDeleted", Home: "internal/snapshot",
		Text: "If the Node of a Machine is deleted, `NodeHealthy` has the reason `NodeDeleted`",
	},
	{
		Name: "NodeLinked", Home: "internal/cloudprovider",
		Text: "A Machine with a provider ID gets the Node with the same one as `nodeRef`, and the Node loses the taint `uninitialized`",
	},
	{
		Name: "ProviderIDFollows", Home: "docs/design/provider-ids.md",
		Text: "If the provider changes its ID, the Machine gets the new one",
	},
	{
		Name: "PausedDeployment", Home: "internal/scalable",
		Text: "A MachineDeployment with the annotation `paused` has the condition `Paused`, and is not scaled",
	},
	{
		Name: "PausedCluster", Home: "internal/operator",
		Text: "In a paused Cluster no Machine ends, and everything continues afterwards",
	},
	{
		Name: "PoolMachines", Home: "internal/controller/scalableresource",
		Text: "Each infrastructure machine of a MachinePool gets a Machine with its label, and replicas concern only the provider",
	},
	{
		Name: "PoolTerminateHook", Home: "internal/lifecycle",
		Text: "A pre-terminate hook keeps the instance of a deleted Machine of a MachinePool, and without the hook it ends",
	},
	{
		Name: "PoolChangedInPlace", Home: "internal/generate",
		Text: "Labels and annotations of a MachinePool reach its Machines",
	},
	{
		Name: "PoolNodeDeleted", Home: "docs/design/machinepools.md",
		Text: "When a provider ID leaves the list of a MachinePool, its Node is deleted",
	},
}

// skippedOnlyBySet is what the operator does if only the annotation of MachineSets skips preflight checks, as up to v1.13
// (internal/controllers/machineset/machineset_preflight.go, skippedPreflightChecks).
const skippedOnlyBySet = "Only the annotation of MachineDeployments skips checks, which is in `spec.scalableResource.annotations` of the template. " +
	"With the other one the template is Ready, and NodeClaims wait with the reason `Blocked` and the message of the check"

// ResultsVariable is the environment variable with the file to which the results of a run are written.
const ResultsVariable = "CONTRACT_RESULTS"

// Results are what a run has found, by the names of facts: empty if the fact holds, otherwise the first line of why not.
type Results map[string]string

// Write writes the results to a file.
func (r Results) Write(file string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}

// ReadResults reads what Write has written.
func ReadResults(file string) (Results, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	results := Results{}
	return results, json.Unmarshal(data, &results)
}
