// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
)

// Stall is why Cluster API or a provider does not work on what a claim waits for. What was
// not tried is no evidence against an offering: the claim waits, as for a paused resource.
type Stall struct {
	// Reason is v1alpha1.ReasonBlocked or v1alpha1.ReasonNoProgress.
	Reason string
	// Message repeats what Cluster API reports, or names the object that nothing acts on.
	Message string
}

func noProgress(format string, args ...any) *Stall {
	return &Stall{Reason: v1alpha1.ReasonNoProgress, Message: fmt.Sprintf(format, args...)}
}

// Stall returns why nothing works on what a claim waits for; nil if something does, or the
// claim does not wait.
func (s *Snapshot) Stall(claim *karpv1.NodeClaim) *Stall {
	if !NeedsMachine(claim) || s.exceeding.Has(claim.UID) {
		return nil
	}
	if name, served := s.Plan.Served[claim.UID]; served {
		return s.machineStalls[name]
	}
	if s.hadMachine(claim) || s.unusable != "" || s.unasked() && IsRejected(claim) {
		return nil
	}
	halt := s.stall
	if halt == nil && s.Resource != nil && s.unasked() {
		halt = noProgress("the replicas of %s could not be set to %d: see the log of the operator", s.Resource, s.Plan.Replicas)
	}
	if halt != nil && halt.Reason == v1alpha1.ReasonNoProgress && s.Now.Before(s.waitsSince(claim).Add(s.progressTimeout())) {
		return nil
	}
	return halt
}

// unasked reports whether Cluster API was not asked yet for all Machines that claims wait for:
// there is no resource, or its replicas are still to be raised.
func (s *Snapshot) unasked() bool {
	return s.Resource == nil || s.Resource.Replicas() < s.Plan.Replicas
}

// claimDue returns when the passing of time alone changes what a claim waits for.
func (s *Snapshot) claimDue(claim *karpv1.NodeClaim) (due []time.Time) {
	if s.Waits(claim) {
		due = append(due, s.waitsSince(claim).Add(s.progressTimeout()), s.waitsSince(claim).Add(s.Settings.LaunchTimeout))
	}
	machine := s.Machines[s.Plan.Served[claim.UID]]
	switch {
	case !NeedsMachine(claim):
	case IsStalled(claim):
		// No event shows that a provider acts on an object again.
		due = append(due, s.Now.Add(s.times().NoProgress))
	case machine != nil && machine.Spec.ProviderID == "":
		due = append(due, s.launchSince(claim, machine).Add(s.Settings.LaunchTimeout))
	}
	return due
}

// IsStalled reports whether a claim was told that nothing works on what it waits for.
func IsStalled(claim *karpv1.NodeClaim) bool {
	return slices.Contains([]string{v1alpha1.ReasonBlocked, v1alpha1.ReasonNoProgress}, unknownReason(claim))
}

// IsRejected reports whether no scalable resource can be created for a claim.
func IsRejected(claim *karpv1.NodeClaim) bool { return unknownReason(claim) == v1alpha1.ReasonRejected }

// HasWaited reports whether a claim has the condition MachineAvailable because it waited for
// Cluster API. It is True once the claim has its Machine.
func HasWaited(claim *karpv1.NodeClaim) bool {
	return IsStalled(claim) || IsRejected(claim) || unknownReason(claim) == v1alpha1.ReasonResumed
}

// unknownReason returns the reason of the claim's condition MachineAvailable while that is
// Unknown.
func unknownReason(claim *karpv1.NodeClaim) string {
	condition := claim.StatusConditions().Get(v1alpha1.ConditionMachineAvailable)
	if condition == nil || !condition.IsUnknown() {
		return ""
	}
	return condition.Reason
}

// Stalled reports whether Cluster API creates no Machines of the resource now, and removes
// none.
func (s *Snapshot) Stalled() bool { return s.stall != nil }

// progressTimeout is for how long nothing may act on something that a claim waits for.
func (s *Snapshot) progressTimeout() time.Duration {
	return min(s.times().NoProgress, s.Settings.LaunchTimeout)
}

// stallOf returns why a MachineDeployment creates no Machines; nil if it does.
func stallOf(deployment *clusterv1.MachineDeployment, sets []clusterv1.MachineSet) *Stall {
	name := client.ObjectKeyFromObject(deployment)
	switch {
	case !deployment.DeletionTimestamp.IsZero():
		return nil // the next one of the name is waited for
	case deployment.Status.ObservedGeneration < deployment.Generation:
		return noProgress("Cluster API has not acted on MachineDeployment %s: check that its controllers run", name)
	case len(sets) == 0:
		return noProgress("Cluster API has created no MachineSet for MachineDeployment %s: check that its controllers run", name)
	}
	for i := range sets {
		set := &sets[i]
		if why := blockedBy(set); why != "" {
			return &Stall{Reason: v1alpha1.ReasonBlocked, Message: fmt.Sprintf("MachineSet %s creates no Machines: %s", client.ObjectKeyFromObject(set), why)}
		}
		if set.Status.ObservedGeneration >= set.Generation {
			continue
		}
		problem := creationProblem(set)
		switch {
		case problem == "":
			return noProgress("Cluster API has not acted on MachineSet %s: check that its controllers run", client.ObjectKeyFromObject(set))
		case !isRejection(problem):
			return noProgress("MachineSet %s cannot create Machines: %s", client.ObjectKeyFromObject(set), problem)
		}
	}
	return nil
}

// blockedBy returns why a MachineSet reports that it creates no Machines, which are failing
// preflight checks and missing templates; empty if it does not (Cluster API:
// core/reconcilers/machineset/machineset_controller_status.go, setScalingUpCondition).
func blockedBy(set *clusterv1.MachineSet) string {
	condition := conditions.Get(set, clusterv1.MachineSetScalingUpCondition)
	if condition == nil {
		return ""
	}
	_, list, _ := strings.Cut(condition.Message, " is blocked because:\n")
	return strings.Join(lo.Map(strings.Split(list, "\n"), func(line string, _ int) string { return strings.TrimPrefix(line, "* ") }), "; ")
}

// creationProblem returns the error with which a MachineSet failed to create Machines; empty
// if it did not fail. Only the condition of the older API version has it (Cluster API:
// core/reconcilers/machineset/machineset_controller.go, createMachines).
func creationProblem(set *clusterv1.MachineSet) string {
	if set.Status.Deprecated == nil || set.Status.Deprecated.V1Beta1 == nil {
		return ""
	}
	created, found := lo.Find(set.Status.Deprecated.V1Beta1.Conditions, func(c clusterv1.Condition) bool { //nolint:staticcheck // No other field has it.
		return c.Type == clusterv1.MachinesCreatedV1Beta1Condition
	})
	if !found || created.Status == "True" {
		return ""
	}
	return created.Message
}

// isRejection reports whether an error of Cluster API is an answer of the API server, or of a
// webhook, that refuses what was to be created. That can be due to the offering.
func isRejection(problem string) bool {
	return lo.SomeBy([]string{"denied the request", " is invalid: ", " is forbidden: "}, func(text string) bool { return strings.Contains(problem, text) })
}

// MachineStall returns why nothing works on a Machine that has no provider ID; nil if
// something does. A controller that has acted on an object leaves a status or a finalizer.
func MachineStall(ctx context.Context, clusters *operator.Clusters, machine *clusterv1.Machine) *Stall {
	if HasNode(machine) || machine.Spec.ProviderID != "" || IsLeaving(machine) {
		return nil
	}
	name := client.ObjectKeyFromObject(machine)
	if len(machine.Status.Conditions) == 0 {
		return noProgress("Cluster API has not acted on Machine %s: check that its controllers run", name)
	}
	if ref := machine.Spec.Bootstrap.ConfigRef; ref.IsDefined() && !conditions.IsTrue(machine, clusterv1.MachineBootstrapConfigReadyCondition) {
		if config, err := read(ctx, clusters, ref); err == nil && untouched(config) {
			return noProgress("the bootstrap provider has not acted on %s %s of Machine %s: check that it runs", ref.Kind, ref.Name, name)
		}
	}
	instance, err := read(ctx, clusters, machine.Spec.InfrastructureRef)
	switch {
	case err != nil:
		return nil // launchTimeout covers whatever cannot be read
	case untouched(instance):
		return noProgress("the infrastructure provider has not acted on %s %s of Machine %s: check that it runs", instance.GetKind(), instance.GetName(), name)
	case provisioned(instance) && hasProviderID(instance):
		return noProgress("Cluster API has not noticed that %s %s of Machine %s is provisioned: check that its controllers run", instance.GetKind(), instance.GetName(), name)
	}
	return nil
}

// untouched reports whether no controller has acted on an object yet.
func untouched(object *unstructured.Unstructured) bool {
	status, _, _ := unstructured.NestedMap(object.Object, "status")
	return len(status) == 0 && len(object.GetFinalizers()) == 0
}

func hasProviderID(instance *unstructured.Unstructured) bool {
	id, _, err := unstructured.NestedString(instance.Object, "spec", "providerID")
	return err == nil && id != ""
}
