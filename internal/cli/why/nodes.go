// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/cli/view"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
)

// ofNodes are the rules from the provider ID of a Machine to a Node that runs Pods.
var ofNodes = []Rule{
	{
		Name: "NodeWithoutID",
		Seen: "a Node has joined without `spec.providerID`, and its NodeClaim is not Registered",
		Do:   "The cloud controller manager sets it, or the kubelet's flag `--provider-id`: check that the cloud controller manager runs",
		of:   isClaim,
		find: func(s *subject) (string, error) {
			node := s.joined(func(node *corev1.Node) bool { return node.Spec.ProviderID == "" })
			if node == nil {
				return "", nil
			}
			return fmt.Sprintf("Node %s joined after Machine %s was created, and has no provider ID", node.Name, s.machine.Name), nil
		},
	},
	{
		Name: "OtherProviderID",
		Seen: "a Node has joined with another provider ID than its NodeClaim has",
		Do:   "Karpenter finds a Node only by its provider ID. Check whether the NodeClaim, the Machine and the Node have the same one, and correct what sets it on the Node",
		of:   isClaim,
		find: func(s *subject) (string, error) {
			node := s.joined(func(node *corev1.Node) bool {
				return s.view.ClaimOfNode(node) == nil && s.view.MachineOfNode(node) == nil
			})
			if node == nil {
				return "", nil
			}
			return fmt.Sprintf("Node %s joined with provider ID %s, which no NodeClaim and no Machine has. Machine %s has %s", node.Name, node.Spec.ProviderID, s.machine.Name, s.machine.Spec.ProviderID), nil
		},
	},
	{
		Name: "NodeMissing",
		Seen: "a Machine has a provider ID and there is no Node",
		Do:   "Does the instance exist? On vSphere, the VSphereVM shows it. If it does not, delete the NodeClaim. If it does, look at its console: bootstrap has failed, or the kubelet cannot reach the API server",
		of:   isClaim,
		find: func(s *subject) (string, error) {
			if s.node != nil || s.machine == nil {
				return "", nil
			}
			return fmt.Sprintf("the instance %s of Machine %s has not become a Node. The Machine exists since %s", s.machine.Spec.ProviderID, s.machine.Name, s.since(s.machine.CreationTimestamp.Time)), nil
		},
	},
	{
		Name: "NotRegistered",
		Seen: "the Node exists and the NodeClaim is not Registered",
		Do:   "Read the message. If a taint is missing, the bootstrap data does not make the kubelet register with `karpenter.sh/unregistered:NoExecute`",
		See:  "docs/guides/patches.md#bootstrap-without-kubeadm",
		of:   isClaim,
		find: func(s *subject) (string, error) {
			if nodeclaims.IsRegistered(s.claim) {
				return "", nil
			}
			return fmt.Sprintf("NodeClaim %s is not registered: %s", s.claim.Name, orNothing(view.OfClaim(s.claim).Problem)), nil
		},
	},
	{
		Name: "NodeNotReady",
		Seen: "the Node exists and is not Ready",
		Do:   "Read the message. On a new Node, the network plugin is the usual cause",
		of:   isClaim,
		find: func(s *subject) (string, error) {
			if view.IsReady(s.node) {
				return "", nil
			}
			return fmt.Sprintf("Node %s is not Ready: %s", s.node.Name, view.OfNode(s.node).Problem), nil
		},
	},
	{
		Name: "NotInitialized",
		Seen: "the NodeClaim is Registered and not Initialized",
		Do:   "The message names the taint or the resource that it waits for. A controller that is to remove a startup taint, or a device plugin, does not run on the Node",
		of:   isClaim,
		find: func(s *subject) (string, error) {
			if c := nodeclaims.ConditionOf(s.claim, karpv1.ConditionTypeInitialized); c != nil && c.IsTrue() {
				return "", nil
			}
			return fmt.Sprintf("NodeClaim %s is not initialized: %s", s.claim.Name, orNothing(view.OfClaim(s.claim).Problem)), nil
		},
	},
	{
		Name: "PodDoesNotFit",
		Seen: "a Pod does not run on the Node that was launched for it",
		Do:   "Read the template's condition `CapacityAccurate`: `spec.kubelet` or `capacity` promise more than the Nodes have. `status.observedCapacity` shows what they report, and Karpenter uses it for the next decision",
		of:   isClaim,
		find: func(s *subject) (string, error) {
			if !s.waits() {
				return "", nil
			}
			return fmt.Sprintf("Node %s was launched for Pod %s, and kube-scheduler does not bind it: %s", s.node.Name, s.pod.Name, orNothing(ofPod(s.pod).Problem)), nil
		},
	},
	{
		Name: "Drifted",
		Seen: "a NodeClaim is Drifted, and Karpenter replaces it",
		Do:   "Nothing. Karpenter replaces the Node within the disruption budgets of its NodePool",
		See:  "docs/guides/upgrades.md",
		of:   isClaim,
		find: func(s *subject) (string, error) {
			c := nodeclaims.ConditionOf(s.claim, karpv1.ConditionTypeDrifted)
			if c == nil || !c.IsTrue() {
				return "", nil
			}
			return fmt.Sprintf("NodeClaim %s is outdated: %s", s.claim.Name, c.Reason), nil
		},
	},
	{
		Name: "NotOfKarpenter",
		Seen: "a Node has no NodeClaim",
		Do:   "Nothing. Karpenter acts only on Nodes with a NodeClaim",
		of:   func(s *subject) bool { return s.kind == "node" && s.claim == nil },
		find: func(s *subject) (string, error) {
			return fmt.Sprintf("no NodeClaim has the provider ID %q of Node %s", s.node.Spec.ProviderID, s.node.Name), nil
		},
	},
}

// joined returns the oldest Node without a NodeClaim that joined after the Machine was created, while the Machine waits for its
// Node; nil if there is none.
func (s *subject) joined(is func(*corev1.Node) bool) *corev1.Node {
	if s.machine == nil || s.node != nil || s.machine.Spec.ProviderID == "" {
		return nil
	}
	found, _ := lo.Find(lo.ToSlicePtr(s.view.Nodes), func(node *corev1.Node) bool {
		return !node.CreationTimestamp.Before(&s.machine.CreationTimestamp) && is(node)
	})
	return found
}
