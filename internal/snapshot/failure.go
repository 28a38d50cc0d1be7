// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"fmt"
	"strings"
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
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
)

// LaunchTimeout is the failure of a machine that was not launched within launchTimeoutSeconds.
const LaunchTimeout failure.Kind = v1alpha1.ReasonLaunchTimeout

// ResourceUnusable is the failure of a claim whose scalable resource cannot provide Machines.
const ResourceUnusable failure.Kind = v1alpha1.ReasonScalableResourceUnusable

// why returns why the launch of a claim is stalled, or else why its machine could not be launched; nil if the claim has
// a machine, needs none, or may still get one.
func (s *Snapshot) why(claim *karpv1.NodeClaim) (*Stall, *failure.Failure) {
	if stall := s.whyStalled(claim); stall != nil {
		return stall, nil
	}
	return nil, s.whyFailed(claim)
}

// whyFailed returns why the machine of a claim whose launch is not stalled could not be launched. In a Cluster that is
// being deleted, claims end without a failure. Claims of a suspended resource wait, and so does one that reports a stall.
func (s *Snapshot) whyFailed(claim *karpv1.NodeClaim) *failure.Failure {
	if !nodeclaims.NeedsMachine(claim) || s.ClusterDeleting || s.Suspended || nodeclaims.IsStalled(claim) {
		return nil
	}
	if s.exceeding.Has(claim.UID) {
		return &failure.Failure{Kind: LimitReached, Message: fmt.Sprintf("offering %s has no machine left, because maxMachines or its reservation is used up: see the status of KarpenterMachineTemplate %s", catalog.KeyOf(claim), s.Template.Name)}
	}
	if name, served := s.Plan.Served[claim.UID]; served {
		return s.failureOf(claim, s.Machines[name])
	}
	if s.nameTaken(claim) {
		return &failure.Failure{Kind: NameTaken, Message: fmt.Sprintf("%s %s was generated from something else than the Machine of offering %s would be: use a KarpenterMachineTemplate of another name", s.kind().Name(), s.Name, catalog.KeyOf(claim))}
	}
	if s.hadMachine(claim) {
		return nil // it gets another Machine
	}
	if s.unusable != "" {
		return &failure.Failure{Kind: ResourceUnusable, Message: s.unusable}
	}
	if s.Now.Before(s.waitsSince(claim).Add(s.Settings.LaunchTimeout)) {
		return nil
	}
	return &failure.Failure{Kind: LaunchTimeout, Message: fmt.Sprintf("Cluster API has created no Machine in %s%s", s.Settings.LaunchTimeout, s.whyNone(claim))}
}

// hadMachine reports whether a Machine is linked to a claim that no Machine serves: it is leaving.
func (s *Snapshot) hadMachine(claim *karpv1.NodeClaim) bool {
	return len(s.LinkedTo(claim.UID)) > 0
}

// failureOf returns why the Machine of a claim does not become a Node; nil if it may.
func (s *Snapshot) failureOf(claim *karpv1.NodeClaim, machine *clusterv1.Machine) *failure.Failure {
	if failed := s.failed[machine.Name]; failed != nil {
		return failed
	}
	if machine.Spec.ProviderID != "" || s.Now.Before(s.launchSince(claim, machine).Add(s.Settings.LaunchTimeout)) {
		return nil
	}
	return &failure.Failure{Kind: LaunchTimeout, Message: fmt.Sprintf("Machine %s has had no provider ID for %s%s", machine.Name, s.Settings.LaunchTimeout, launchProblem(machine))}
}

// FailureOf returns why a Machine has failed for good; nil if it has not failed. It also reads the
// infrastructure object from the cache, because the Machine's conditions often show only that it is
// not ready.
func FailureOf(ctx context.Context, clusters *operator.Clusters, machine *clusterv1.Machine) *failure.Failure {
	if failed := failure.Of(machine); failed != nil {
		return failed
	}
	ready := conditions.Get(machine, clusterv1.MachineInfrastructureReadyCondition)
	if lifecycle.HasNode(machine) || machine.Spec.ProviderID != "" || ready == nil || ready.Status != metav1.ConditionFalse {
		return nil
	}
	object, err := reference.Shared(ctx, clusters.Management.GetClient(), machine.Spec.InfrastructureRef, clusters.Cluster.Namespace)
	if err != nil {
		// launchTimeoutSeconds limits the wait for an object that cannot be read.
		log.FromContext(ctx).V(1).Info("cannot determine whether a Machine has failed", "Machine", client.ObjectKeyFromObject(machine), "error", err.Error())
		return nil
	}
	return failure.OfInfrastructure(object)
}

// startedAt returns the time from which Cluster API could act on a Machine.
func (s *Snapshot) startedAt(machine *clusterv1.Machine) time.Time {
	return startedAt(machine, s.UpSince)
}

// launchSince returns the time from which the Machine of a claim could have got a provider ID.
func (s *Snapshot) launchSince(claim *karpv1.NodeClaim, machine *clusterv1.Machine) time.Time {
	since := s.startedAt(machine)
	if condition := nodeclaims.ConditionOf(claim, v1alpha1.ConditionMachineAvailable); condition != nil && condition.Reason == v1alpha1.ReasonResumed {
		since = lo.Latest(since, condition.LastTransitionTime.Time)
	}
	return since
}

// waitsSince returns the time from which a claim without a Machine could have got one.
func (s *Snapshot) waitsSince(claim *karpv1.NodeClaim) time.Time {
	since := claim.CreationTimestamp.Time
	for _, kind := range []string{karpv1.ConditionTypeLaunched, v1alpha1.ConditionMachineAvailable} {
		if condition := nodeclaims.ConditionOf(claim, kind); condition != nil {
			since = lo.Latest(since, condition.LastTransitionTime.Time)
		}
	}
	return lo.Latest(since, s.index().lastActed, s.UpSince)
}

// unpausedAt returns when Cluster API resumed work on a paused object; zero if that is not known.
func unpausedAt(object conditions.Getter) time.Time {
	if paused := conditions.Get(object, clusterv1.PausedCondition); paused != nil && paused.Status == metav1.ConditionFalse {
		return paused.LastTransitionTime.Time
	}
	return time.Time{}
}

// whyNone returns what prevents Cluster API from creating a Machine for a claim.
func (s *Snapshot) whyNone(claim *karpv1.NodeClaim) string {
	switch {
	case s.unasked() && nodeclaims.IsRejected(claim):
		return ": " + nodeclaims.ConditionOf(claim, v1alpha1.ConditionMachineAvailable).Message
	case s.scalingProblem != "":
		return s.scalingProblem
	case s.Resource == nil:
		return fmt.Sprintf(": the %s does not exist", s.kind().Name())
	default:
		return problem(conditions.Get(s.Resource.Conditions(), clusterv1.ScalingUpCondition))
	}
}

// launchProblem returns what a Machine waits for. Providers of contract v1beta1 give the reason only in a
// deprecated condition.
func launchProblem(machine *clusterv1.Machine) string {
	if text := problem(conditions.Get(machine, clusterv1.MachineBootstrapConfigReadyCondition)); text != "" {
		return text
	}
	text := problem(conditions.Get(machine, clusterv1.MachineInfrastructureReadyCondition))
	switch reason, message := failure.ReportedV1Beta1(machine); {
	case strings.Contains(text, message): // also if it reports none
		return text
	case text == "":
		return fmt.Sprintf(": %s: %s", reason, message)
	default:
		return fmt.Sprintf("%s (%s: %s)", text, reason, message)
	}
}

// problem returns the reason and message of a condition, to be appended to a sentence.
func problem(condition *metav1.Condition) string {
	if condition == nil || condition.Message == "" || condition.Type != clusterv1.ScalingUpCondition && condition.Status == metav1.ConditionTrue {
		return ""
	}
	return fmt.Sprintf(": %s: %s", condition.Reason, condition.Message)
}
