// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
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

// InstanceGone returns why the instance of a Machine with a Node counts as gone; empty if it does not.
//
// Two witnesses must report it. The provider reports that the instance no longer exists, or gave up on it
// according to the v1beta1 contract, as Azure's provider does for a deleted virtual machine
// (cluster-api-provider-azure: controllers/azuremachine_controller.go). And the Node is not Ready: a
// provider also gives up on instances that run. Neither an unknown condition nor a provider that does
// nothing is such a report.
func InstanceGone(machine *clusterv1.Machine) string {
	infrastructure := conditions.Get(machine, clusterv1.MachineInfrastructureReadyCondition)
	node := conditions.Get(machine, clusterv1.MachineNodeReadyCondition)
	if infrastructure == nil || infrastructure.Status != metav1.ConditionFalse || node == nil || !slices.Contains(silentReasons, node.Reason) {
		return ""
	}
	if slices.Contains(goneReasons, infrastructure.Reason) {
		return cmp.Or(infrastructure.Message, infrastructure.Reason)
	}
	if failed := terminal(machine); failed != nil {
		return failed.Message
	}
	return ""
}
