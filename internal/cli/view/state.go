// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/awslabs/operatorpkg/status"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// State is the state of one object, as it shows it itself.
type State struct {
	// Word is the state in one or two words.
	Word string
	// Problem is the condition that blocks the object, with its reason and message; empty if nothing blocks it.
	Problem string
}

const deleting = "Deleting"

// OfNodePool returns the state of a NodePool.
func OfNodePool(pool *karpv1.NodePool) State {
	return ready(pool, pool.Status.Conditions, karpv1.ConditionTypeNodeRegistrationHealthy)
}

// OfTemplate returns the state of a template. What Ready does not depend on is no problem here, because its other offerings
// can be launched.
func OfTemplate(template *v1alpha1.KarpenterMachineTemplate) State {
	return ready(template, template.Status.Conditions)
}

// OfCatalog returns the state of a catalog. Instance types that cannot be used are no problem here, because others can.
func OfCatalog(catalog *v1alpha1.InstanceTypeCatalog) State {
	return ready(catalog, catalog.Status.Conditions)
}

// ready returns the state of an object that is Ready or not. Other conditions are problems if they are False.
func ready(object metav1.Object, all []status.Condition, others ...string) State {
	root := Condition(all, status.ConditionReady)
	switch {
	case object.GetDeletionTimestamp() != nil:
		return State{deleting, because(root)}
	case root == nil:
		return State{"NotReady", "it has no condition Ready yet"}
	case !root.IsTrue():
		return State{"NotReady", because(root)}
	}
	for _, kind := range others {
		if c := Condition(all, kind); c.IsFalse() {
			return State{"Ready", because(c)}
		}
	}
	return State{Word: "Ready"}
}

// Condition returns the condition of a type; nil if there is none.
func Condition(all []status.Condition, kind string) *status.Condition {
	for i := range all {
		if all[i].Type == kind {
			return &all[i]
		}
	}
	return nil
}

// because returns why a condition is not True; empty if it is.
func because(condition *status.Condition) string {
	if condition == nil || condition.IsTrue() {
		return ""
	}
	return sentence(condition.Type, condition.Reason, condition.Message)
}

// OneLine returns a text without line breaks and other repeated space.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// sentence returns a condition in one line.
func sentence(kind, reason, message string) string {
	message = OneLine(message)
	if reason == kind || reason == "" {
		return strings.TrimSuffix(kind+": "+message, ": ")
	}
	return strings.TrimSuffix(fmt.Sprintf("%s=%s: %s", kind, reason, message), ": ")
}

// OfClaim returns the state of a NodeClaim.
func OfClaim(claim *karpv1.NodeClaim) State {
	condition := func(kind string) *status.Condition { return nodeclaims.ConditionOf(claim, kind) }
	is := func(kind string) bool { return condition(kind).IsTrue() }
	if claim.DeletionTimestamp != nil {
		for _, kind := range []string{karpv1.ConditionTypeDrained, karpv1.ConditionTypeVolumesDetached, karpv1.ConditionTypeInstanceTerminating} {
			if c := condition(kind); c != nil && !c.IsTrue() {
				return State{deleting, because(c)}
			}
		}
		return State{Word: deleting}
	}
	state := State{Word: "Pending"}
	steps := []string{karpv1.ConditionTypeLaunched, karpv1.ConditionTypeRegistered, karpv1.ConditionTypeInitialized}
	for _, step := range steps {
		if !is(step) {
			state.Problem = because(condition(step))
			break
		}
		state.Word = step
	}
	for _, kind := range []string{v1alpha1.ConditionMachineReady, v1alpha1.ConditionMachineAvailable, v1alpha1.ConditionProviderIDUnchanged} {
		if c := condition(kind); c != nil && !c.IsTrue() {
			state.Problem = because(c)
		}
	}
	if state.Problem == "" && is(karpv1.ConditionTypeDrifted) {
		c := condition(karpv1.ConditionTypeDrifted)
		state.Problem = sentence(c.Type, c.Reason, c.Message)
	}
	return state
}

// OfResource returns the state of a MachineDeployment or MachinePool: its ready Machines, and the replicas that it should have.
func OfResource(resource *scalable.Resource) State {
	_, isReady := resource.Machines()
	state := State{Word: fmt.Sprintf("%d/%d ready", isReady, resource.Replicas())}
	all, _ := resource.Machines()
	switch {
	case resource.GetDeletionTimestamp() != nil:
		state.Word = deleting
	case resource.Paused():
		state.Problem = "it is paused"
	case all != resource.Replicas():
		state.Problem = ofCondition(conditions.Get(resource.Conditions(), lo.Ternary(all < resource.Replicas(), clusterv1.ScalingUpCondition, clusterv1.ScalingDownCondition)), metav1.ConditionTrue)
	}
	return state
}

// OfMachine returns the state of a Machine: its phase, and the first of its conditions that blocks it.
func OfMachine(machine *clusterv1.Machine) State {
	state := State{Word: cmp.Or(machine.Status.Phase, "Pending")}
	if !machine.DeletionTimestamp.IsZero() {
		state.Problem = ofCondition(conditions.Get(machine, clusterv1.MachineDeletingCondition), metav1.ConditionTrue)
		return state
	}
	for _, kind := range []string{clusterv1.MachineBootstrapConfigReadyCondition, clusterv1.MachineInfrastructureReadyCondition, clusterv1.MachineNodeReadyCondition} {
		if problem := ofCondition(conditions.Get(machine, kind), metav1.ConditionFalse, metav1.ConditionUnknown); problem != "" {
			state.Problem = problem
			return state
		}
	}
	return state
}

// ofCondition returns a condition that has one of the statuses; empty if it has another one.
func ofCondition(condition *metav1.Condition, statuses ...metav1.ConditionStatus) string {
	if condition == nil || !lo.Contains(statuses, condition.Status) {
		return ""
	}
	return sentence(condition.Type, condition.Reason, condition.Message)
}

// OfProvider returns the state of an infrastructure or bootstrap object: whether it is ready, and its first condition that is
// not True.
func OfProvider(object *unstructured.Unstructured) State {
	if object.GetDeletionTimestamp() != nil {
		return State{Word: deleting}
	}
	state := State{Word: "NotReady"}
	for _, field := range [][]string{{"status", "initialization", "provisioned"}, {"status", "initialization", "dataSecretCreated"}, {"status", "ready"}} {
		if is, _, err := unstructured.NestedBool(object.Object, field...); err == nil && is {
			state.Word = "Ready"
		}
	}
	all, err := conditions.UnstructuredGetAll(object)
	if err != nil {
		return state
	}
	for i := range all {
		// Some conditions are False in the normal state, such as Paused and Deleting.
		if all[i].Type == clusterv1.PausedCondition || all[i].Type == clusterv1.DeletingCondition {
			continue
		}
		if problem := ofCondition(&all[i], metav1.ConditionFalse); problem != "" {
			state.Problem = problem
			return state
		}
	}
	return state
}

// IsReady reports whether a Node is Ready, also if no Pods are scheduled to it.
func IsReady(node *corev1.Node) bool { return strings.HasPrefix(OfNode(node).Word, "Ready") }

// OfNode returns the state of a Node, as kubectl shows it.
func OfNode(node *corev1.Node) State {
	state := State{Word: "NotReady", Problem: "it has not reported its condition Ready"}
	for _, condition := range node.Status.Conditions {
		if condition.Type != corev1.NodeReady {
			continue
		}
		if state.Problem = ""; condition.Status == corev1.ConditionTrue {
			state.Word = "Ready"
		} else {
			state.Problem = sentence(string(condition.Type), condition.Reason, condition.Message)
		}
	}
	switch {
	case node.DeletionTimestamp != nil:
		state.Word = deleting
	case node.Spec.Unschedulable:
		state.Word += ",SchedulingDisabled"
	}
	return state
}
