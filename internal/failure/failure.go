// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
)

// Kind tells why a machine could not be had.
type Kind string

const (
	// InsufficientCapacity means that the infrastructure has no such machine there
	// at the moment.
	InsufficientCapacity Kind = "InsufficientCapacity"
	// QuotaExceeded means that the account or project may not have another one.
	QuotaExceeded Kind = "QuotaExceeded"
	// MachineFailed means that the provider gave up for any other reason.
	MachineFailed Kind = "MachineFailed"
)

// Failure is why a machine could not be had.
type Failure struct {
	Kind Kind
	// Message is what the infrastructure said: reason and message.
	Message string
}

// Of returns why a Machine has failed for good; nil if it has not, or not yet.
//
// A Machine with a Node has not. Else it has if its provider gave up by the
// terminal failure of the v1beta1 contract, or if it has no provider ID and its
// InfrastructureReady condition, which mirrors Ready of the infrastructure's
// object, says something that Classify knows.
func Of(machine *clusterv1.Machine) *Failure {
	if machine.Status.NodeRef.IsDefined() {
		return nil
	}
	ready := conditions.Get(machine, clusterv1.MachineInfrastructureReadyCondition)
	// Cluster API copies a terminal failure and never takes it back, so it is out of
	// date once the infrastructure is ready.
	if failure := terminal(machine); failure != nil && (ready == nil || ready.Status != metav1.ConditionTrue) {
		return failure
	}
	if machine.Spec.ProviderID != "" || ready == nil || ready.Status != metav1.ConditionFalse {
		return nil
	}
	return of(ready.Reason, ready.Message)
}

// OfInfrastructure returns why the machine behind an infrastructure provider's
// object (AWSMachine, …) could not be had; nil if there is no reason to think so.
//
// It looks at all conditions that are False. Some providers' Ready condition says
// no more than "0 of 2 completed", so that Of has nothing to go by.
func OfInfrastructure(object *unstructured.Unstructured) *Failure {
	if id, _, _ := unstructured.NestedString(object.Object, "spec", "providerID"); id != "" {
		return nil
	}
	var found *Failure
	for _, path := range [][]string{{"status", "conditions"}, {"status", "v1beta2", "conditions"}} {
		list, _, _ := unstructured.NestedSlice(object.Object, path...)
		for _, item := range list {
			condition, _ := item.(map[string]any)
			if condition["status"] != string(metav1.ConditionFalse) {
				continue
			}
			reason, _ := condition["reason"].(string)
			message, _ := condition["message"].(string)
			if failure := of(reason, message); failure != nil && (found == nil || rank(failure.Kind) < rank(found.Kind)) {
				found = failure
			}
		}
	}
	return found
}

// terminal returns the failure of the v1beta1 contract, nil if there is none.
//
//nolint:staticcheck // The fields are deprecated, and providers set them as long as they are there.
func terminal(machine *clusterv1.Machine) *Failure {
	if machine.Status.Deprecated == nil || machine.Status.Deprecated.V1Beta1 == nil {
		return nil
	}
	var reason, message string
	if v := machine.Status.Deprecated.V1Beta1.FailureReason; v != nil {
		reason = string(*v)
	}
	if v := machine.Status.Deprecated.V1Beta1.FailureMessage; v != nil {
		message = *v
	}
	if reason == "" && message == "" {
		return nil
	}
	if failure := of(reason, message); failure != nil {
		return failure
	}
	return &Failure{Kind: MachineFailed, Message: join(reason, message)}
}

// of returns the failure that a reason and message mean, nil if they mean none.
func of(reason, message string) *Failure {
	kind, known := Classify(reason, message)
	if !known {
		return nil
	}
	return &Failure{Kind: kind, Message: join(reason, message)}
}

func join(reason, message string) string {
	return strings.Trim(reason+": "+message, ": ")
}
