// SPDX-License-Identifier: Apache-2.0

package why

import (
	"cmp"
	"fmt"
	"time"

	"github.com/samber/lo"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/view"
	"github.com/karpenter-capi/karpenter-capi/internal/failure"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
)

// ofLaunches are the rules for NodeClaims until their Machine has a provider ID.
var ofLaunches = []Rule{
	{
		Name: "LaunchFailed",
		Seen: "a NodeClaim has the condition `MachineAvailable=False`, and another one follows",
		Do:   "Remove what the message names. The operator has marked the offering as unavailable, and Karpenter chooses another one",
		See:  "docs/failures.md#what-the-operator-does",
		of:   isLaunch,
		find: func(s *subject) (string, error) {
			if c := nodeclaims.ConditionOf(s.claim, v1alpha1.ConditionMachineAvailable); c != nil && c.IsFalse() {
				s.explain(c.Reason)
				return fmt.Sprintf("NodeClaim %s has failed: %s: %s", s.claim.Name, c.Reason, c.Message), nil
			}
			if outcome := s.plan.Outcomes[s.claim.UID]; outcome.Failure != (failure.Failure{}) {
				s.explain(string(outcome.Failure.Kind))
				return fmt.Sprintf("NodeClaim %s fails now: %s: %s", s.claim.Name, outcome.Failure.Kind, outcome.Failure.Message), nil
			}
			return "", nil
		},
	},
	{
		Name: "NotLaunched",
		Seen: "a NodeClaim has no offering yet, and its condition `Launched` is Unknown",
		Do:   "Correct what the message names. Karpenter tries again",
		of:   isLaunch,
		find: func(s *subject) (string, error) {
			if nodeclaims.IsLaunched(s.claim) || s.machine != nil {
				return "", nil
			}
			if problem := view.OfClaim(s.claim).Problem; problem != "" {
				s.explain(problem)
				return fmt.Sprintf("NodeClaim %s is not launched: %s", s.claim.Name, problem), nil
			}
			return fmt.Sprintf("NodeClaim %s is being launched", s.claim.Name), nil
		},
	},
	{
		Name: "ClusterPaused",
		Seen: "a NodeClaim has a provider ID `nodeclaim://…` and nothing happens, and the Cluster is paused or is being deleted",
		Do:   "Set `spec.paused` of the Cluster to false when the work on it has ended",
		See:  "docs/operations.md#pause",
		of:   isLaunch,
		find: func(s *subject) (string, error) {
			cluster := s.view.Cluster
			switch {
			case cluster == nil:
				s.explain(v1alpha1.ReasonClusterNotFound)
				return "the Cluster does not exist", nil
			case !cluster.DeletionTimestamp.IsZero():
				s.explain(v1alpha1.ReasonClusterDeleting)
				return fmt.Sprintf("Cluster %s/%s is being deleted", cluster.Namespace, cluster.Name), nil
			case lo.FromPtr(cluster.Spec.Paused):
				return fmt.Sprintf("Cluster %s/%s is paused, so Cluster API and the operator change nothing of it", cluster.Namespace, cluster.Name), nil
			}
			return "", nil
		},
	},
	{
		Name: "ResourcePaused",
		Seen: "the same, and the MachineDeployment or MachinePool is paused. The annotation `karpenter.cluster.x-k8s.io/scalable-resource` of the NodeClaim names it",
		Do:   "Remove its annotation `cluster.x-k8s.io/paused`, or set its `spec.paused` to false",
		See:  "docs/operations.md#pause",
		of:   isLaunch,
		find: func(s *subject) (string, error) {
			if s.resource == nil || !s.resource.Paused() {
				return "", nil
			}
			return fmt.Sprintf("%s is paused", s.resource), nil
		},
	},
	{
		Name: "ResourceChanged",
		Seen: "the same, and the MachineDeployment was changed by hand, or another controller sets its replicas",
		Do:   "Undo the change that the template's condition `OfferingsValid` names, or let only the operator set the replicas",
		See:  "docs/troubleshooting.md#a-machinedeployment-that-was-changed",
		of:   isLaunch,
		find: func(s *subject) (string, error) {
			if s.resource == nil {
				return "", nil
			}
			changed, err := s.view.Changed(s.ctx, s.resource)
			if changed == "" || err != nil {
				return "", err
			}
			return fmt.Sprintf("%s: %s", s.resource, changed), nil
		},
	},
	{
		Name: "Blocked",
		Seen: "the same, and Cluster API reports that it creates no Machines, such as a preflight check that fails",
		Do:   "Correct what the message names, or skip the check",
		See:  "docs/guides/first-template.md#while-cluster-api-holds-machines-back",
		of:   isLaunch,
		find: func(s *subject) (string, error) { return s.stalled(v1alpha1.ReasonBlocked) },
	},
	{
		Name: "NoProgress",
		Seen: "the same, and no controller acts on the MachineDeployment, MachineSet, MachinePool, Machine, or its infrastructure or bootstrap object",
		Do:   "Check that the controllers of Cluster API and of the provider that the message names run, and read their logs",
		See:  "docs/failures.md#what-is-not-a-failure",
		of:   isLaunch,
		find: func(s *subject) (string, error) { return s.stalled(v1alpha1.ReasonNoProgress) },
	},
	{
		Name: "Rejected",
		Seen: "the same, and the MachineDeployment or MachinePool could not be created or scaled",
		Do:   "Read the message: an admission webhook or a quota of the management cluster rejects the object",
		of:   isLaunch,
		find: func(s *subject) (string, error) { return s.stalled(v1alpha1.ReasonRejected) },
	},
	{
		Name: "PoolNotReady",
		Seen: "the same with a MachinePool, and its replicas stay as they are",
		Do:   "Look at its infrastructure object, which has the same name: at its conditions, and at `status.infrastructureMachineKind`. On AWS, a Machine appears up to 3 minutes after its instance",
		See:  "docs/guides/machinepools.md#what-is-refused",
		of:   isLaunch,
		find: func(s *subject) (string, error) {
			if s.machine != nil || s.plan.Reasons["replicas"] != planner.InfrastructureNotReady {
				return "", nil
			}
			return fmt.Sprintf("%s: %s", s.resource, planner.InfrastructureNotReady), nil
		},
	},
	{
		Name: "LimitExceeded",
		Seen: "a NodeClaim waits because older ones have used up `maxMachines` or a reservation",
		Do:   "Nothing, because Karpenter decides again. To have more Nodes, raise the limit",
		of:   isLaunch,
		find: func(s *subject) (string, error) {
			if s.plan.Reasons["NodeClaim "+s.claim.Name] != planner.LimitIsReached {
				return "", nil
			}
			return fmt.Sprintf("NodeClaim %s gets no Machine: %s", s.claim.Name, planner.LimitIsReached), nil
		},
	},
	{
		Name: "MachineNotCreated",
		Seen: "the same, and nothing is reported",
		Do:   "Wait: Cluster API works on one object at most once a second. After half a minute without progress, the NodeClaim shows what does not act",
		of:   isLaunch,
		find: func(s *subject) (string, error) {
			switch {
			case s.machine != nil:
				return "", nil
			case s.resource == nil:
				return fmt.Sprintf("NodeClaim %s waits until the operator has created its scalable resource %s", s.claim.Name, s.claim.Annotations[v1alpha1.ScalableResourceAnnotation]), nil
			}
			all, _ := s.resource.Machines()
			return fmt.Sprintf("NodeClaim %s waits for a Machine of %s, which has %d of %d", s.claim.Name, s.resource, all, s.resource.Replicas()), nil
		},
	},
	{
		Name: "BootstrapNotReady",
		Seen: "a Machine has no bootstrap data",
		Do:   "Read the conditions of its bootstrap object and the log of the bootstrap provider",
		of:   isLaunch,
		find: func(s *subject) (string, error) {
			ready := conditions.Get(s.machine, clusterv1.MachineBootstrapConfigReadyCondition)
			if ready == nil || ready.Status == metav1.ConditionTrue {
				return "", nil
			}
			config := s.provider(s.machine.Spec.Bootstrap.ConfigRef)
			problem := ready.Message
			if config != nil {
				problem = cmp.Or(view.OfProvider(config).Problem, problem)
			}
			return fmt.Sprintf("%s %s has no bootstrap data for Machine %s: %s", s.machine.Spec.Bootstrap.ConfigRef.Kind, s.machine.Spec.Bootstrap.ConfigRef.Name, s.machine.Name, cmp.Or(view.OneLine(problem), "it has not reported why")), nil
		},
	},
	{
		Name: "InstanceNotReady",
		Seen: "a Machine stays in Provisioning",
		Do:   "Read the conditions of its infrastructure object, which has the same name. After the template's `launchTimeoutSeconds`, the launch fails and Karpenter chooses another offering",
		See:  "docs/failures.md#what-the-operator-does",
		of:   isLaunch,
		find: func(s *subject) (string, error) {
			ref := s.machine.Spec.InfrastructureRef
			problem := "it has not reported why"
			if ready := conditions.Get(s.machine, clusterv1.MachineInfrastructureReadyCondition); ready != nil && ready.Message != "" {
				problem = view.OneLine(ready.Message)
			}
			if object := s.provider(ref); object != nil {
				problem = cmp.Or(view.OfProvider(object).Problem, problem)
			}
			return fmt.Sprintf("%s %s of Machine %s has no provider ID since %s: %s", ref.Kind, ref.Name, s.machine.Name, s.since(s.machine.CreationTimestamp.Time), problem), nil
		},
	},
}

// stalled returns why the launch is stalled for a reason, whether the NodeClaim shows it already or not; empty if it is not.
func (s *subject) stalled(reason string) (string, error) {
	if c := nodeclaims.ConditionOf(s.claim, v1alpha1.ConditionMachineAvailable); c != nil && c.IsUnknown() && c.Reason == reason {
		return fmt.Sprintf("NodeClaim %s waits: %s", s.claim.Name, view.OneLine(c.Message)), nil
	}
	if stall := s.plan.Outcomes[s.claim.UID].Stall; stall.Reason == reason {
		return fmt.Sprintf("NodeClaim %s waits: %s", s.claim.Name, view.OneLine(stall.Message)), nil
	}
	return "", nil
}

// since returns the time from then to the time of the view, in seconds or more.
func (s *subject) since(at time.Time) string {
	return s.view.Now.Sub(at).Truncate(time.Second).String()
}
