// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	nodeutils "sigs.k8s.io/karpenter/pkg/utils/node"
)

// goneReasons are the reasons of the condition InfrastructureReady that report that an instance no
// longer exists.
var goneReasons = []string{
	// Cluster API reports that the infrastructure object was deleted, which its provider allows only
	// after the instance.
	clusterv1.MachineInfrastructureDeletedReason,
	// AWS (cluster-api-provider-aws: controllers/awsmachine_controller.go).
	"InstanceTerminated",
}

// silentReasons are the reasons of the condition NodeReady of a Node whose kubelet reports a problem, or
// does not report. A connection that Cluster API does not have is no such reason.
var silentReasons = []string{clusterv1.MachineNodeNotReadyReason, clusterv1.MachineNodeReadyUnknownReason}

// silence is for how long a Node must not have been Ready until a terminal failure counts as the end of
// its instance. Cluster API never removes a terminal failure, and a provider can report one for an
// instance that runs. A restart of an API server, or of the network, makes all Nodes Unknown at once
// for a minute or two. Kubernetes evicts the Pods of a Node that is not Ready after 5 minutes
// (DefaultTolerationSeconds), so an earlier decision would replace no Pod earlier.
const silence = 5 * time.Minute

// InstanceGone returns why the instance of a Machine with a Node counts as gone; empty if it does not.
//
// Two witnesses must report it. The provider reports that the instance no longer exists, or gave up on it
// according to the v1beta1 contract, as Azure's provider does for a deleted virtual machine
// (cluster-api-provider-azure: controllers/azuremachine_controller.go). And the Node is not Ready: a
// provider also gives up on instances that run. Neither an unknown condition nor a provider that does
// nothing is such a report.
//
// needsSilence reports whether the provider only gave up. Then Silent must confirm it.
func InstanceGone(machine *clusterv1.Machine) (why string, needsSilence bool) {
	infrastructure := conditions.Get(machine, clusterv1.MachineInfrastructureReadyCondition)
	node := conditions.Get(machine, clusterv1.MachineNodeReadyCondition)
	if infrastructure == nil || infrastructure.Status != metav1.ConditionFalse || node == nil || !slices.Contains(silentReasons, node.Reason) {
		return "", false
	}
	if slices.Contains(goneReasons, infrastructure.Reason) {
		return cmp.Or(infrastructure.Message, infrastructure.Reason), false
	}
	if failed := terminal(machine); failed != nil {
		return failed.Message, true
	}
	return "", false
}

// Silent reports whether a Node has not been Ready for long enough. If it may become so by time alone,
// left is after how long. The time is that of the Node and not of the Machine, whose condition keeps
// its time when its status stays Unknown for another reason, such as a lost connection before.
func Silent(node *corev1.Node, now time.Time) (silent bool, left time.Duration) {
	ready := nodeutils.GetCondition(node, corev1.NodeReady)
	if ready.Status == corev1.ConditionTrue {
		return false, 0
	}
	since := node.CreationTimestamp.Time
	if ready.LastTransitionTime.After(since) {
		since = ready.LastTransitionTime.Time
	}
	left = since.Add(silence).Sub(now)
	return left <= 0, max(left, 0)
}
