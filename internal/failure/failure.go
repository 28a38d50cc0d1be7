// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Kind is why a machine could not be launched: a reason of v1alpha1.
type Kind string

const (
	// InsufficientCapacity means that the infrastructure has no capacity for such a
	// machine at the moment.
	InsufficientCapacity Kind = v1alpha1.ReasonInsufficientCapacity
	// QuotaExceeded means that a quota of the account or project is exhausted.
	QuotaExceeded Kind = v1alpha1.ReasonQuotaExceeded
	// MachineFailed means that the provider stopped retrying for another reason.
	MachineFailed Kind = v1alpha1.ReasonMachineFailed
)

// Failure is why a machine could not be launched.
type Failure struct {
	Kind Kind
	// Message is the reason and message that the infrastructure reports.
	Message string
}

// Of returns why a Machine has failed; nil if it has not failed, or not yet.
//
// A Machine with a Node has not failed. Any other Machine has failed if its provider
// reports the terminal failure of the v1beta1 contract, or if the Machine has no provider
// ID and Classify knows the reason or message of its condition InfrastructureReady, which
// mirrors Ready of the infrastructure's object, in its present or in its deprecated form.
func Of(machine *clusterv1.Machine) *Failure {
	if machine.Status.NodeRef.IsDefined() {
		return nil
	}
	ready := conditions.Get(machine, clusterv1.MachineInfrastructureReadyCondition)
	// Cluster API copies a terminal failure and never removes it, so it is out of date
	// when the infrastructure is ready.
	if failure := terminal(machine); failure != nil && (ready == nil || ready.Status != metav1.ConditionTrue) {
		return failure
	}
	if machine.Spec.ProviderID != "" || ready == nil || ready.Status != metav1.ConditionFalse {
		return nil
	}
	if failure := of(ready.Reason, ready.Message); failure != nil {
		return failure
	}
	return of(ReportedV1Beta1(machine))
}

// ReportedV1Beta1 returns the reason and the message that the infrastructure object of a Machine reports in
// its condition Ready of contract v1beta1; empty if that condition is not False or has no message. The newer
// conditions of providers of that contract often have no message.
func ReportedV1Beta1(machine *clusterv1.Machine) (reason, message string) {
	for _, condition := range machine.GetV1Beta1Conditions() {
		if condition.Type == clusterv1.InfrastructureReadyV1Beta1Condition && condition.Status == corev1.ConditionFalse && condition.Message != "" {
			return condition.Reason, condition.Message
		}
	}
	return "", ""
}

// OfInfrastructure returns why the machine of an infrastructure provider's object, such
// as an AWSMachine, could not be launched; nil if the object reports no failure.
//
// It reads all conditions that are False, because the condition Ready of some providers
// has only a message such as "0 of 2 completed", which Of cannot classify.
func OfInfrastructure(object *unstructured.Unstructured) *Failure {
	if id, _, _ := unstructured.NestedString(object.Object, "spec", "providerID"); id != "" {
		return nil
	}
	var found *Failure
	for _, c := range falseConditions(object) {
		if failure := of(c.reason, c.message); failure != nil && (found == nil || rank(failure.Kind) < rank(found.Kind)) {
			found = failure
		}
	}
	return found
}

// Reported returns the reason and the message with which an infrastructure provider's object reports why it has no machine yet; empty if
// it reports none. The condition Ready can be only a count of the others, so it is not considered.
func Reported(object *unstructured.Unstructured) (reason, message string) {
	for _, c := range falseConditions(object) {
		if c.name != clusterv1.ReadyCondition && c.message != "" {
			return c.reason, c.message
		}
	}
	return "", ""
}

// condition is one of an infrastructure provider's object.
type condition struct{ name, reason, message string }

// falseConditions returns the conditions of an object that are False.
func falseConditions(object *unstructured.Unstructured) []condition {
	var found []condition
	for _, path := range [][]string{{"status", "conditions"}, {"status", "v1beta2", "conditions"}} {
		field, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...) // the object can be shared with a cache
		list, _ := field.([]any)
		for _, item := range list {
			content, _ := item.(map[string]any)
			if content["status"] != string(metav1.ConditionFalse) {
				continue
			}
			var c condition
			c.name, _ = content["type"].(string)
			c.reason, _ = content["reason"].(string)
			c.message, _ = content["message"].(string)
			found = append(found, c)
		}
	}
	return found
}

// terminal returns the failure of the v1beta1 contract; nil if there is none.
//
//nolint:staticcheck // The fields are deprecated, and providers set them as long as they exist.
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

// of returns the failure that a reason and message mean; nil if they mean none.
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
