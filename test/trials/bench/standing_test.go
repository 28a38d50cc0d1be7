// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// A copy refers to other copies, and has the status of the original.
func TestCopyObject(t *testing.T) {
	scheme, err := stack.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	machine := &clusterv1.Machine{
		TypeMeta: metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "m-1", UID: "old", ResourceVersion: "7", Generation: 3,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachineSet", Name: "m", UID: "set"}},
		},
		Spec: clusterv1.MachineSpec{ProviderID: "sim://default/m-1/old-instance"},
		Status: clusterv1.MachineStatus{
			NodeRef:    clusterv1.MachineNodeReference{Name: "m-1"},
			Conditions: []metav1.Condition{{Type: clusterv1.ReadyCondition, ObservedGeneration: 3}},
		},
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(machine)
	if err != nil {
		t.Fatal(err)
	}
	original := &unstructured.Unstructured{Object: content}
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&clusterv1.Machine{}).Build()
	if _, err := copyObject(t.Context(), c, original, strings.NewReplacer("old-instance", "new-instance", "m-1", "m-1-9")); err != nil {
		t.Fatal(err)
	}
	got := &clusterv1.Machine{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "m-1-9"}, got); err != nil {
		t.Fatal(err)
	}
	if got.UID == "old" || got.OwnerReferences[0].UID != "set" || got.Spec.ProviderID != "sim://default/m-1-9/new-instance" || got.Status.NodeRef.Name != "m-1-9" {
		t.Errorf("got %+v", got)
	}
	if generation := got.Status.Conditions[0].ObservedGeneration; generation != 1 {
		t.Errorf("got a condition of generation %d, want that of a new object", generation)
	}
}

// The API server taints each new Node.
func TestCopyOfNodeHasNoTaints(t *testing.T) {
	original := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "m-1"},
		"spec": map[string]any{"taints": []any{map[string]any{"key": corev1.TaintNodeNotReady, "effect": "NoSchedule"}}},
	}}
	c := fake.NewClientBuilder().Build()
	copied, err := copyObject(t.Context(), c, original, strings.NewReplacer("m-1", "m-1-9"))
	if err != nil {
		t.Fatal(err)
	}
	node := &corev1.Node{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(copied), node); err != nil || len(node.Spec.Taints) > 0 {
		t.Errorf("got taints %v and %v", node.Spec.Taints, err)
	}
}
