// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"
	"strings"

	"github.com/samber/lo"

	"sigs.k8s.io/cluster-api/util/conditions"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/view"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
)

// ofMachines are the rules for Machines that serve no NodeClaim, and for those that end.
var ofMachines = []Rule{
	{
		Name: "MachineEnds",
		Seen: "a Machine that you deleted stays",
		Do:   "Its Node is being drained: events of the Node show what blocks it. A Machine of a MachinePool also waits until replicas are lowered, 3 minutes at most",
		See:  "docs/guides/machinepools.md#when-a-machine-is-deleted",
		of:   isUnlinked,
		find: func(s *subject) (string, error) {
			if s.machine.DeletionTimestamp.IsZero() {
				return "", nil
			}
			return fmt.Sprintf("Machine %s is being deleted: %s", s.machine.Name, orNothing(conditions.GetMessage(s.machine, clusterv1.MachineDeletingCondition))), nil
		},
	},
	{
		Name: "NotGenerated",
		Seen: "a Machine has nothing to do with Karpenter",
		Do:   "Nothing. The operator acts only on Machines of objects that it has generated or adopted",
		of:   isUnlinked,
		find: func(s *subject) (string, error) {
			if s.resource != nil {
				return "", nil
			}
			return fmt.Sprintf("no template has generated or adopted what created Machine %s", s.machine.Name), nil
		},
	},
	{
		Name: "Unmanaged",
		Seen: "a Machine of an adopted MachineDeployment serves no NodeClaim",
		Do:   "Nothing. The MachineDeployment had it before, or it replaces one of these",
		See:  "docs/guides/adopting-machinedeployments.md",
		of:   isUnlinked,
		find: func(s *subject) (string, error) {
			plan, err := s.view.Plan(s.ctx, s.resource.GetName())
			if err != nil || !slices.Contains(plan.Unmanaged, s.machine.Name) {
				return "", err
			}
			return fmt.Sprintf("Machine %s is one of the unmanaged replicas of %s", s.machine.Name, s.resource), nil
		},
	},
	{
		Name: "Spare",
		Seen: "a Machine serves no NodeClaim, and has the annotation `karpenter.cluster.x-k8s.io/spare-since`",
		Do:   "Nothing. The next NodeClaim with its offering gets it, or the operator deletes it after the template's `spareTTLSeconds`",
		of:   isUnlinked,
		find: func(s *subject) (string, error) {
			plan, err := s.view.Plan(s.ctx, s.resource.GetName())
			if err != nil {
				return "", err
			}
			cause := fmt.Sprintf("Machine %s serves no NodeClaim since %s", s.machine.Name, s.since(lifecycle.SpareSince(s.machine)))
			if because := plan.Because[s.machine.Name]; because != "" {
				cause += fmt.Sprintf(", and is deleted, because %s", because)
			} else if reason := plan.Reasons["Machine "+s.machine.Name]; reason != "" {
				cause += fmt.Sprintf(", and stays, because %s", reason)
			}
			return cause, nil
		},
	},
	{
		Name: "ClaimEnds",
		Seen: "a NodeClaim is not deleted",
		Do:   "It stays until its Machine no longer exists. If the Cluster is paused, continue it. If the Node is not drained, events of its Pods show what blocks it, such as a PodDisruptionBudget",
		See:  "docs/guides/moving-clusters.md#while-the-operator-has-no-cluster",
		of:   isEnding,
		find: func(s *subject) (string, error) {
			problem := view.OfClaim(s.claim).Problem
			if cluster := s.view.Cluster; cluster != nil && lo.FromPtr(cluster.Spec.Paused) {
				problem = fmt.Sprintf("Cluster %s/%s is paused", cluster.Namespace, cluster.Name)
			} else if s.machine != nil && problem == "" {
				problem = fmt.Sprintf("Machine %s still exists: %s", s.machine.Name, orNothing(conditions.GetMessage(s.machine, clusterv1.MachineDeletingCondition)))
			}
			return fmt.Sprintf("NodeClaim %s is being deleted: %s", s.claim.Name, orNothing(problem)), nil
		},
	},
	{
		Name: "ProviderIDChanged",
		Seen: "the condition `ProviderIDUnchanged` of a NodeClaim is False",
		Do:   "Its infrastructure object has got another `spec.providerID`. Find out what has changed it, and correct it. If the new ID is right, delete the NodeClaim: Karpenter drains and replaces its Node",
		of:   isClaim,
		find: func(s *subject) (string, error) {
			state := view.OfClaim(s.claim)
			if !strings.HasPrefix(state.Problem, v1alpha1.ConditionProviderIDUnchanged) {
				return "", nil
			}
			return fmt.Sprintf("NodeClaim %s: %s", s.claim.Name, state.Problem), nil
		},
	},
}

func orNothing(text string) string {
	if text = view.OneLine(text); text == "" {
		return "nothing is reported"
	}
	return text
}
