// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// How long after its creation, or deletion, a Machine gets there.
const (
	toProviderID = 10 * time.Second
	toNode       = 25 * time.Second
	toNodeRef    = 26 * time.Second
	toEnd        = 4 * time.Second
)

// infrastructure is Cluster API's controller of Machines and the provider behind
// it: a Machine gets a provider ID, a Node, and a reference to it; or it fails. A
// deleted one goes, unless its pre-drain hook holds it.
func (w *world) infrastructure() {
	w.server.actor = "infrastructure"
	for _, machine := range w.machines() {
		if !machine.DeletionTimestamp.IsZero() {
			w.terminate(machine)
		} else if w.holds == nil || !w.holds() {
			w.boot(machine)
		}
	}
}

// boot lets a Machine come one step further.
func (w *world) boot(m *clusterv1.Machine) {
	age := w.clock.Since(m.CreationTimestamp.Time) - w.mode.slowness(m.Name)
	if age < toProviderID {
		return
	}
	if w.fails != nil && w.fails(m) && m.Spec.ProviderID == "" {
		w.setInfrastructureReady(m, metav1.ConditionFalse, "InsufficientInstanceCapacity", "the infrastructure has no such machine now")
		return
	}
	if m.Spec.ProviderID == "" {
		m = m.DeepCopy()
		m.Spec.ProviderID = "sim://" + m.Name
		w.setInfrastructureReady(m, metav1.ConditionTrue, "Provisioned", "")
		return
	}
	node, joined := w.server.head["Node"][m.Name]
	switch {
	case !joined && age >= toNode && !m.Status.NodeRef.IsDefined() && (w.alone == nil || !w.alone()):
		w.server.put(newNode(m))
	case joined && age >= toNodeRef && !m.Status.NodeRef.IsDefined():
		m = m.DeepCopy()
		m.Status.NodeRef.Name = node.GetName()
		w.server.put(m)
	}
}

func (w *world) setInfrastructureReady(m *clusterv1.Machine, status metav1.ConditionStatus, reason, message string) {
	m = m.DeepCopy()
	if len(m.Status.Conditions) == 0 || m.Status.Conditions[0].Status != status {
		m.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineInfrastructureReadyCondition, Status: status,
			Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(w.clock.Now())}}
	}
	w.server.put(m)
}

// terminate lets a deleted Machine go, its Node first.
func (w *world) terminate(m *clusterv1.Machine) {
	if w.keeps != nil && w.keeps() || m.Status.NodeRef.IsDefined() && held(m) || w.clock.Since(m.DeletionTimestamp.Time)-w.mode.slowness(m.Name) < toEnd {
		return
	}
	if node, ok := w.server.head["Node"][m.Name]; ok {
		must(client.IgnoreNotFound(w.live().Delete(context.Background(), node)))
	}
	m = m.DeepCopy()
	m.Finalizers = slices.DeleteFunc(m.Finalizers, func(f string) bool { return f == clusterv1.MachineFinalizer })
	w.server.put(m)
}

// held tells whether a pre-drain hook holds a Machine that has a Node.
func held(m *clusterv1.Machine) bool {
	for key := range m.Annotations {
		if strings.HasPrefix(key, clusterv1.PreDrainDeleteHookAnnotationPrefix) {
			return true
		}
	}
	return false
}

// newNode returns the Node of a Machine, as its kubelet registers it.
func newNode(m *clusterv1.Machine) *corev1.Node {
	resources := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("110")}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: m.Name, Labels: map[string]string{corev1.LabelHostname: m.Name, corev1.LabelTopologyZone: m.Labels[v1alpha1.ZoneLabel]}},
		Spec:       corev1.NodeSpec{ProviderID: m.Spec.ProviderID, Taints: []corev1.Taint{karpv1.UnregisteredNoExecuteTaint}},
		Status: corev1.NodeStatus{
			Capacity: resources, Allocatable: resources,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}
