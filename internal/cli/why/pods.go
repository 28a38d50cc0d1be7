// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"strings"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	podutils "sigs.k8s.io/karpenter/pkg/utils/pod"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/view"
)

// ofPods are the rules for Pods that have no Node and no NodeClaim.
var ofPods = []Rule{
	{
		Name: "PodEnds",
		Seen: "a Pod has a Node and does not end",
		Do:   "Read the events of the Pod: its containers have not ended, or it has a finalizer",
		of:   isPod,
		find: func(s *subject) (string, error) {
			if s.pod.DeletionTimestamp == nil {
				return "", nil
			}
			return fmt.Sprintf("Pod %s is being deleted since %s", s.pod.Name, s.pod.DeletionTimestamp.UTC().Format("15:04:05 MST")), nil
		},
	},
	{
		Name: "ContainersWait",
		Seen: "a Pod has a Node and does not run",
		Do:   "This is no matter of Nodes. Run `kubectl describe pod`: its events show what a container waits for",
		of:   isPod,
		find: func(s *subject) (string, error) {
			if s.waits() {
				return "", nil
			}
			for _, container := range append(s.pod.Status.InitContainerStatuses, s.pod.Status.ContainerStatuses...) {
				if waiting := container.State.Waiting; waiting != nil {
					return strings.TrimSuffix(fmt.Sprintf("Pod %s is on Node %s, and container %s waits: %s: %s", s.pod.Name, s.pod.Spec.NodeName, container.Name, waiting.Reason, view.OneLine(waiting.Message)), ": "), nil
				}
			}
			return "", nil
		},
	},
	{
		Name: "Gated",
		Seen: "a Pod is pending with the reason `SchedulingGated`",
		Do:   "The controller that has set the gate must remove it. No scheduler looks at the Pod before",
		of:   isUnserved,
		find: func(s *subject) (string, error) {
			if len(s.pod.Spec.SchedulingGates) == 0 {
				return "", nil
			}
			gates := lo.Map(s.pod.Spec.SchedulingGates, func(g corev1.PodSchedulingGate, _ int) string { return g.Name })
			return fmt.Sprintf("Pod %s has the scheduling gates %s", s.pod.Name, strings.Join(gates, ", ")), nil
		},
	},
	{
		Name: "OfDaemonSet",
		Seen: "a Pod of a DaemonSet is pending",
		Do:   "Karpenter launches no Nodes for Pods of DaemonSets. If the Pod is large, it does not fit beside the other Pods of its Node: give it a higher priority",
		of:   isUnserved,
		find: func(s *subject) (string, error) {
			if !podutils.IsOwnedByDaemonSet(s.pod) {
				return "", nil
			}
			return fmt.Sprintf("Pod %s belongs to a DaemonSet: %s", s.pod.Name, ofPod(s.pod).Problem), nil
		},
	},
	{
		Name: "NotTried",
		Seen: "a Pod is pending, and kube-scheduler has not tried it",
		Do:   "Check that kube-scheduler runs, and that `spec.schedulerName` of the Pod is that of a scheduler which runs. Karpenter waits until it has found no Node",
		of:   isUnserved,
		find: func(s *subject) (string, error) {
			scheduled, known := condition(s.pod, corev1.PodScheduled)
			if known && scheduled.Reason == corev1.PodReasonUnschedulable {
				return "", nil
			}
			return fmt.Sprintf("scheduler %s has not reported that Pod %s fits on no Node", s.pod.Spec.SchedulerName, s.pod.Name), nil
		},
	},
	{
		Name: "NoNodePool",
		Seen: "a Pod is pending, and no NodePool uses a KarpenterMachineTemplate",
		Do:   "Create a NodePool whose `nodeClassRef` names a template",
		See:  "docs/guides/first-template.md",
		of:   isUnserved,
		find: func(s *subject) (string, error) {
			return lo.Ternary(len(s.refusals) == 0, "no NodePool uses a "+v1alpha1.Kind, ""), nil
		},
	},
	refused(notReady, Rule{
		Name: "TemplateNotReady",
		Seen: "a Pod is pending, and its NodePool or the template of that is not Ready",
		Do:   "The message describes what to correct, and the [reference of conditions](reference/conditions.md) has every reason",
	}),
	refused(poolLimited, Rule{
		Name: "NodePoolLimit",
		Seen: "a Pod is pending, and its NodePool has as many resources as `spec.limits` allows",
		Do:   "Raise `spec.limits` of the NodePool, or delete what is no longer needed",
	}),
	refused(full, Rule{
		Name: "LimitReached",
		Seen: "a Pod is pending, and `maxMachines` or the count of a reservation is reached, or nothing is left that `capacityFrom` counts. `status.limitedOfferings` of the template shows what is used",
		Do:   "Raise the limit in the template or catalog, or add other offerings",
		See:  "docs/guides/first-template.md#limits-and-reservations",
	}),
	refused(unavailable, Rule{
		Name: "OfferingsUnavailable",
		Seen: "a Pod is pending, and no offering that it fits can be chosen: `status.unavailableOfferings` of the template shows what has failed, why, and until when",
		Do:   "Remove what the message names, such as a quota, or add instance types or zones. Each offering is tried again at its time",
		See:  "docs/failures.md#what-the-operator-does",
	}),
	refused(tooSmall, Rule{
		Name: "TooLarge",
		Seen: "a Pod is pending, and is larger than every instance type. Karpenter may create NodeClaims and delete them immediately",
		Do:   "Lower the requests of the Pod, or add a larger instance type. The requests of DaemonSets count as well",
	}),
	refused(noOffering, Rule{
		Name: "NoOffering",
		Seen: "a Pod is pending, and its node selector or affinity excludes every offering of its NodePool. `status.invalidOfferings` of the template shows what cannot be offered",
		Do:   "Correct the selector of the Pod, or add what it asks for to the template or catalog. `kubectl karpenter-capi offerings` shows what there is",
	}),
	refused(notTolerated, Rule{
		Name: "NotTolerated",
		Seen: "a Pod is pending, and does not tolerate the taints of any NodePool",
		Do:   "Add a toleration to the Pod, or a NodePool without the taint",
	}),
	refused(otherLabels, Rule{
		Name: "OtherLabels",
		Seen: "a Pod is pending, and its node selector or affinity excludes every NodePool",
		Do:   "Correct the selector of the Pod, or the labels and requirements of the NodePool",
	}),
	claimsNotServed,
	{
		Name: "NotSchedulable",
		Seen: "a Pod is pending, and NodePools would accept it. Its volumes, its affinity to other Pods, or its topology spread can exclude all Nodes",
		Do:   "Read the last event of the Pod. If it has none from Karpenter, it comes within seconds: Karpenter waits for further Pods",
		of:   isUnserved,
		find: func(s *subject) (string, error) {
			for _, event := range s.view.Events(s.ctx, s.pod) {
				if event.Type == corev1.EventTypeWarning {
					return fmt.Sprintf("Pod %s: %s: %s", s.pod.Name, event.Reason, view.OneLine(event.Message)), nil
				}
			}
			return fmt.Sprintf("Karpenter has not decided about Pod %s yet", s.pod.Name), nil
		},
	},
}

// refused is a rule for Pods that the NodePool to act on refuses at a rank.
func refused(at rank, rule Rule) Rule {
	rule.of = isUnserved
	rule.find = func(s *subject) (string, error) {
		if len(s.refusals) == 0 || s.refusals[0].rank != at {
			return "", nil
		}
		first := s.refusals[0]
		if at == notReady {
			s.explain(first.message)
		}
		return fmt.Sprintf("NodePool %s: %s", first.pool.Name, first.message), nil
	}
	return rule
}

// reason is what to do about a reason of a condition, and the page that describes it.
type reason struct{ do, see string }

// Do returns what to do about a reason of a condition; empty if that is not known.
func Do(name string) string { return reasons[name].do }

// explain takes what to do from the reason of a condition in a message of package view.
func (s *subject) explain(message string) {
	words := strings.FieldsFunc(message, func(r rune) bool { return r == '=' || r == ':' || r == ' ' })
	for _, word := range words {
		if reason, known := reasons[word]; known {
			s.do, s.see = reason.do, reason.see
			return
		}
	}
}
