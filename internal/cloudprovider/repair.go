// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"time"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/internal/remediation"
)

const (
	// mayRecover is the toleration for conditions that can become healthy again: a kubelet restarts, a
	// network comes back.
	mayRecover = 30 * time.Minute
	// staysBroken is the toleration for conditions that are never healthy again before the machine is
	// restarted. It is the time for a person to look.
	staysBroken = 10 * time.Minute
	// drain is how long Karpenter tries to drain a Node whose kubelet still ends Pods.
	drain = 10 * time.Minute
	// noDrain is for Nodes whose kubelet ends no Pods, so that waiting for a drain does not help.
	noDrain = time.Duration(0)
)

// RepairPolicies returns when a Node counts as broken, so that Karpenter repairs it if the feature
// gate NodeRepair is on. Conditions that only count restarts, such as FrequentKubeletRestart, are
// symptoms that end, so there are no policies for them.
//
// For each condition, one policy replaces the Node, and one restarts it after the same time. Package
// remediation decides by the reason of the condition which of them applies to a Node.
//
// The conditions of Machines are not among them, because Karpenter knows only those of Nodes. See
// package failure.
func (c *CloudProvider) RepairPolicies() []cloudprovider.RepairPolicy {
	all := replacing()
	return append(all, lo.Map(all, func(policy cloudprovider.RepairPolicy, _ int) cloudprovider.RepairPolicy {
		policy.ReasonRegex, policy.Action = remediation.Announced, cloudprovider.RebootNode
		return policy
	})...)
}

// replacing returns the policies that replace Nodes. Exactly one policy, the one without an expression for the
// reason, is the default of all conditions (karpenter: pkg/controllers/node/health/policy.go).
func replacing() []cloudprovider.RepairPolicy {
	kubelet := replace(corev1.NodeReady, corev1.ConditionFalse, mayRecover, noDrain)
	kubelet.ReasonRegex = ""
	return []cloudprovider.RepairPolicy{
		// The kubelet, and the node controller for a kubelet that does not report.
		kubelet,
		replace(corev1.NodeReady, corev1.ConditionUnknown, mayRecover, noDrain),

		// The node problem detector in its default deployment (node-problem-detector:
		// deployment/node-problem-detector.yaml with config/kernel-monitor.json,
		// config/readonly-monitor.json and config/docker-monitor.json). It sets these conditions of
		// type "permanent" from messages of the kernel, and does not remove them.
		replace("KernelDeadlock", corev1.ConditionTrue, staysBroken, noDrain),
		replace("ReadonlyFilesystem", corev1.ConditionTrue, staysBroken, drain),
		replace("XfsShutdown", corev1.ConditionTrue, staysBroken, drain),
		replace("CperHardwareErrorFatal", corev1.ConditionTrue, staysBroken, drain),
		replace("CorruptDockerOverlay2", corev1.ConditionTrue, staysBroken, drain),

		// Its health checkers, which restart what they check (config/health-checker-kubelet.json,
		// config/health-checker-containerd.json).
		replace("KubeletUnhealthy", corev1.ConditionTrue, mayRecover, noDrain),
		replace("ContainerRuntimeUnhealthy", corev1.ConditionTrue, mayRecover, noDrain),

		// The node monitoring agent of EKS, with the tolerations of Karpenter's provider for AWS
		// (karpenter-provider-aws: pkg/cloudprovider/cloudprovider.go).
		replace("AcceleratedHardwareReady", corev1.ConditionFalse, 10*time.Minute, drain),
		replace("StorageReady", corev1.ConditionFalse, mayRecover, drain),
		replace("NetworkingReady", corev1.ConditionFalse, mayRecover, drain),
		replace("KernelReady", corev1.ConditionFalse, mayRecover, noDrain),
		replace("ContainerRuntimeReady", corev1.ConditionFalse, mayRecover, noDrain),
	}
}

// replace returns the policy that replaces Nodes with a condition after the toleration, unless they are restarted.
// grace limits the drain, also if the NodePool has no terminationGracePeriod.
func replace(condition corev1.NodeConditionType, status corev1.ConditionStatus, toleration, grace time.Duration) cloudprovider.RepairPolicy {
	return cloudprovider.RepairPolicy{
		ConditionType:          condition,
		ConditionStatus:        status,
		ReasonRegex:            remediation.NotAnnounced,
		TolerationDuration:     toleration,
		TerminationGracePeriod: &grace,
		Action:                 cloudprovider.ReplaceNode,
	}
}
