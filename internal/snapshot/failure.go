// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"fmt"
	"time"

	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/failure"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
)

// LaunchTimeout is the failure of a machine that did not come in time.
const LaunchTimeout failure.Kind = "LaunchTimeout"

// ResourceUnusable is the failure of a scalable resource from which no Machines can be
// had.
const ResourceUnusable failure.Kind = v1alpha1.ReasonScalableResourceUnusable

// Failure returns why the machine of a claim could not be had; nil if the claim
// has one, needs none, or it may still come. With a Cluster that is being deleted,
// claims end, and nothing has failed; of a resource that is left alone, claims wait.
func (s *Snapshot) Failure(claim *karpv1.NodeClaim) *failure.Failure {
	if !NeedsMachine(claim) || s.ClusterDeleting || s.Suspended || IsStalled(claim) || s.Stall(claim) != nil {
		return nil
	}
	if s.exceeding.Has(claim.UID) {
		return &failure.Failure{Kind: LimitReached, Message: fmt.Sprintf("%s has no machine left within maxMachines or its reservation, see the status of KarpenterMachineTemplate %s", catalog.KeyOf(claim), s.Template.Name)}
	}
	if name, served := s.Plan.Served[claim.UID]; served {
		return s.failureOf(claim, s.Machines[name])
	}
	if s.hadMachine(claim) {
		return nil // it gets another
	}
	if s.unusable != "" {
		return &failure.Failure{Kind: ResourceUnusable, Message: s.unusable}
	}
	if s.Now.Before(s.waitsSince(claim).Add(s.Settings.LaunchTimeout)) {
		return nil
	}
	return &failure.Failure{Kind: LaunchTimeout, Message: fmt.Sprintf("Cluster API has created no Machine in %s%s", s.Settings.LaunchTimeout, s.whyNone(claim))}
}

// hadMachine reports whether a Machine is linked to a claim that has none.
func (s *Snapshot) hadMachine(claim *karpv1.NodeClaim) bool {
	return lo.SomeBy(lo.Values(s.Machines), func(machine *clusterv1.Machine) bool { return lifecycle.ClaimUID(machine) == claim.UID })
}

// failureOf returns why the Machine of a claim will not become a Node.
func (s *Snapshot) failureOf(claim *karpv1.NodeClaim, machine *clusterv1.Machine) *failure.Failure {
	if failed := s.failed[machine.Name]; failed != nil {
		return failed
	}
	if machine.Spec.ProviderID != "" || s.Now.Before(s.launchSince(claim, machine).Add(s.Settings.LaunchTimeout)) {
		return nil
	}
	return &failure.Failure{Kind: LaunchTimeout, Message: fmt.Sprintf("Machine %s has had no provider ID for %s%s", machine.Name, s.Settings.LaunchTimeout, launchProblem(machine))}
}

// unfit tells whether a Machine that serves no claim is of no use to another.
func (s *Snapshot) unfit(machine *clusterv1.Machine) bool {
	return s.failed[machine.Name] != nil ||
		!s.mayHavePods(machine) && s.machineStalls[machine.Name] == nil && !s.Now.Before(startedAt(machine).Add(s.Settings.LaunchTimeout))
}

// FailureOf returns why a Machine has failed for good; nil if it has not. It reads,
// from the cache, the infrastructure's own object too, since the Machine's
// conditions often only say that it is not ready.
func FailureOf(ctx context.Context, clusters *operator.Clusters, machine *clusterv1.Machine) *failure.Failure {
	if failed := failure.Of(machine); failed != nil {
		return failed
	}
	ready := conditions.Get(machine, clusterv1.MachineInfrastructureReadyCondition)
	if lifecycle.HasNode(machine) || machine.Spec.ProviderID != "" || ready == nil || ready.Status != metav1.ConditionFalse {
		return nil
	}
	object, err := reference.Get(ctx, clusters.Management.GetClient(), machine.Spec.InfrastructureRef, clusters.Cluster.Namespace)
	if err != nil {
		// Whatever it is that cannot be read, the launch timeout is there.
		log.FromContext(ctx).V(1).Info("cannot tell whether a Machine has failed", "Machine", client.ObjectKeyFromObject(machine), "error", err.Error())
		return nil
	}
	return failure.OfInfrastructure(object)
}

// startedAt returns when Cluster API could begin with a Machine.
func startedAt(machine *clusterv1.Machine) time.Time {
	return lo.Latest(machine.CreationTimestamp.Time, unpausedAt(machine))
}

// launchSince returns since when the Machine of a claim could have got a provider ID.
func (s *Snapshot) launchSince(claim *karpv1.NodeClaim, machine *clusterv1.Machine) time.Time {
	since := startedAt(machine)
	if condition := claim.StatusConditions().Get(v1alpha1.ConditionMachineAvailable); condition != nil && condition.Reason == v1alpha1.ReasonResumed {
		since = lo.Latest(since, condition.LastTransitionTime.Time)
	}
	return since
}

// waitsSince returns since when a claim without a Machine could have got one.
func (s *Snapshot) waitsSince(claim *karpv1.NodeClaim) time.Time {
	since := claim.CreationTimestamp.Time
	for _, kind := range []string{karpv1.ConditionTypeLaunched, v1alpha1.ConditionMachineAvailable} {
		if condition := claim.StatusConditions().Get(kind); condition != nil {
			since = lo.Latest(since, condition.LastTransitionTime.Time)
		}
	}
	if s.Resource != nil {
		since = lo.Latest(since, unpausedAt(s.Resource.Conditions()))
	}
	// As long as Cluster API goes on making Machines, its turn may come.
	for _, machine := range s.Machines {
		since = lo.Latest(since, machine.CreationTimestamp.Time)
	}
	return since
}

// unpausedAt returns since when Cluster API works on an object.
func unpausedAt(object conditions.Getter) time.Time {
	if paused := conditions.Get(object, clusterv1.PausedCondition); paused != nil && paused.Status == metav1.ConditionFalse {
		return paused.LastTransitionTime.Time
	}
	return time.Time{}
}

// whyNone returns what keeps Cluster API from creating a Machine for a claim.
func (s *Snapshot) whyNone(claim *karpv1.NodeClaim) string {
	switch {
	case s.unasked() && IsRejected(claim):
		return ": " + claim.StatusConditions().Get(v1alpha1.ConditionMachineAvailable).Message
	case s.scalingProblem != "":
		return s.scalingProblem
	case s.Resource == nil:
		return fmt.Sprintf(": there is no %s", s.kind().Name())
	default:
		return problem(conditions.Get(s.Resource.Conditions(), clusterv1.ScalingUpCondition))
	}
}

// launchProblem says what a Machine waits for.
func launchProblem(machine *clusterv1.Machine) string {
	for _, kind := range []string{clusterv1.MachineBootstrapConfigReadyCondition, clusterv1.MachineInfrastructureReadyCondition} {
		if text := problem(conditions.Get(machine, kind)); text != "" {
			return text
		}
	}
	return ""
}

// problem returns what a condition says, to be appended to a sentence.
func problem(condition *metav1.Condition) string {
	if condition == nil || condition.Message == "" || condition.Type != clusterv1.ScalingUpCondition && condition.Status == metav1.ConditionTrue {
		return ""
	}
	return fmt.Sprintf(": %s: %s", condition.Reason, condition.Message)
}
