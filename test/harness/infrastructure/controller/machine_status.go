// SPDX-License-Identifier: Apache-2.0

package controller

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

// InstanceFailedReason is the reason of a failed instance whose spec has none.
const InstanceFailedReason = "InstanceFailed"

// missingPrerequisite returns what an instance still waits for before it is started; empty if nothing is missing.
func missingPrerequisite(machine *infrav1.SimulatedMachine, owner *clusterv1.Machine, cluster *clusterv1.Cluster) (reason, message string) {
	if machine.Status.StartTime != nil {
		// A started instance continues, even if its prerequisites are no longer met.
		return "", ""
	}
	return missing(owner.Spec.Bootstrap, cluster)
}

// missing returns which of the prerequisites of the contract is missing; empty if none is.
func missing(bootstrap clusterv1.Bootstrap, cluster *clusterv1.Cluster) (reason, message string) {
	switch {
	case !ptr.Deref(cluster.Status.Initialization.InfrastructureProvisioned, false):
		return clusterv1.WaitingForClusterInfrastructureReadyReason, "Waiting for the Cluster's infrastructure to be provisioned"
	case bootstrap.DataSecretName == nil:
		return clusterv1.WaitingForBootstrapDataReason, "Waiting for bootstrap data"
	default:
		return "", ""
	}
}

func isProvisioned(machine *infrav1.SimulatedMachine) bool {
	return ptr.Deref(machine.Status.Initialization.Provisioned, false)
}

// provision reports that the instance exists, with what Cluster API's core copies to the Machine at the same time.
func (r *machineReconciler) provision(machine *infrav1.SimulatedMachine, owner *clusterv1.Machine) {
	machine.Status.Initialization.Provisioned = ptr.To(true)
	machine.Status.FailureDomain = zoneOf(machine, owner)
	machine.Status.Addresses = []clusterv1.MachineAddress{
		{Type: clusterv1.MachineHostName, Address: machine.Name},
		{Type: clusterv1.MachineInternalDNS, Address: machine.Name},
	}
}

// setReady summarizes the state of a started instance.
func (r *machineReconciler) setReady(machine *infrav1.SimulatedMachine, failed bool) {
	switch {
	case failed:
		failure := ptr.Deref(machine.Spec.Failure, infrav1.Failure{})
		reason := failure.Reason
		if reason == "" {
			reason = InstanceFailedReason
		}
		r.setStatus(machine, metav1.ConditionFalse, reason, failure.Message)
	case isProvisioned(machine):
		r.setStatus(machine, metav1.ConditionTrue, clusterv1.ProvisionedReason, "")
	default:
		r.setStatus(machine, metav1.ConditionFalse, clusterv1.NotProvisionedReason, "Instance is being provisioned")
	}
}

// setStatus sets Ready, and Paused to its value for any machine that is reconciled.
func (r *machineReconciler) setStatus(machine *infrav1.SimulatedMachine, ready metav1.ConditionStatus, reason, message string) {
	now := r.clock.Now()
	setPaused(machine, "", now)
	setCondition(machine, now, metav1.Condition{Type: clusterv1.ReadyCondition, Status: ready, Reason: reason, Message: message})
}
