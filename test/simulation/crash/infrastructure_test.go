// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/connection"
)

// How long after its creation, or deletion, a Machine reaches the state.
const (
	toProviderID = 10 * time.Second
	toNode       = 25 * time.Second
	toNodeRef    = 26 * time.Second
	toEnd        = 4 * time.Second
)

// infrastructure is Cluster API's controller of Machines and the provider behind it, for Machines of
// MachineDeployments: a Machine gets a provider ID, a Node, and a reference to it; or it fails. A deleted one is
// removed, unless its pre-drain hook blocks that.
func (w *simulation) infrastructure() {
	w.server.actor = "infrastructure"
	for _, machine := range w.machines() {
		if !machine.DeletionTimestamp.IsZero() {
			w.terminate(machine)
		} else if w.holds == nil || !w.holds() {
			w.boot(machine)
		}
	}
}

// boot does the next step of a Machine.
func (w *simulation) boot(m *clusterv1.Machine) {
	age := w.clock.Since(m.CreationTimestamp.Time) - w.mode.slowness(m.Name)
	if len(m.Status.Conditions) == 0 {
		w.setInfrastructureReady(m, metav1.ConditionFalse, "NotReady", "")
		return
	}
	if age < toProviderID {
		return
	}
	if w.fails != nil && w.fails(m) && m.Spec.ProviderID == "" {
		w.setInfrastructureReady(m, metav1.ConditionFalse, "InsufficientInstanceCapacity", "the infrastructure has no capacity for the machine")
		return
	}
	if m.Spec.ProviderID == "" {
		m = m.DeepCopy()
		m.Spec.ProviderID = w.newProviderID(m.Name)
		w.setInfrastructureReady(m, metav1.ConditionTrue, "Provisioned", "")
		return
	}
	node, joined := w.server.head["Node"][m.Name]
	switch {
	case w.isOut(connection.Workload):
		// No Node can join, and Cluster API sees none.
	case !joined && age >= toNode && !m.Status.NodeRef.IsDefined() && w.mayJoin(m.Spec.ProviderID):
		w.server.put(newNode(m.Name, m.Spec.ProviderID, m.Labels[v1alpha1.ZoneLabel]))
	case joined && age >= toNodeRef && !m.Status.NodeRef.IsDefined():
		m = m.DeepCopy()
		m.Status.NodeRef.Name = node.GetName()
		w.server.put(m)
	}
}

// mayJoin reports whether a Node with this ID joins. If IDs are used again, a Node joins only after each claim that had
// the ID has ended, and core knows: when core ends a claim, it deletes all Nodes with its ID, even those of other claims
// (nodeclaim/lifecycle, finalize), also if its cache does not show yet that the claim no longer exists.
func (w *simulation) mayJoin(id string) bool {
	for _, claim := range w.claims() {
		if w.mode.reused && !claim.DeletionTimestamp.IsZero() && claim.Status.ProviderID == id {
			return false
		}
	}
	for _, c := range w.server.log["NodeClaim"] {
		if w.mode.reused && c.after == nil && c.before.(*karpv1.NodeClaim).Status.ProviderID == id && w.clock.Since(c.at) < outdatedBound+staleBound {
			return false
		}
	}
	return w.alone == nil || !w.alone()
}

// newProviderID returns the ID of a new instance. If IDs are used again, like those of physical hosts, it is that of a
// Machine that no longer exists and whose Node no longer exists, if there is one.
func (w *simulation) newProviderID(name string) string {
	used := map[string]bool{}
	for _, m := range w.machines() {
		used[m.Spec.ProviderID] = true
	}
	for name := range w.server.head[instanceKind] {
		used[providerID(w.instance(name))] = true
	}
	for _, node := range w.server.head["Node"] {
		used[node.(*corev1.Node).Spec.ProviderID] = true
	}
	for _, id := range slices.Sorted(maps.Keys(w.owners)) {
		if w.mode.reused && !used[id] {
			return id
		}
	}
	return "sim://" + name
}

func (w *simulation) setInfrastructureReady(m *clusterv1.Machine, status metav1.ConditionStatus, reason, message string) {
	m = m.DeepCopy()
	if len(m.Status.Conditions) == 0 || m.Status.Conditions[0].Reason != reason {
		m.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineInfrastructureReadyCondition, Status: status,
			Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(w.clock.Now())}}
	}
	w.server.put(m)
}

// terminate continues the deletion of a Machine.
func (w *simulation) terminate(m *clusterv1.Machine) {
	if w.keeps != nil && w.keeps() || w.held(m) || w.clock.Since(m.DeletionTimestamp.Time)-w.mode.slowness(m.Name) < toEnd {
		return
	}
	w.end(m)
}

// end removes a Machine whose infrastructure no longer exists, its Node first, except with its Cluster.
func (w *simulation) end(m *clusterv1.Machine) {
	if node, ok := w.server.head["Node"][m.Name]; ok && !w.clusterEnds() {
		if w.isOut(connection.Workload) {
			return // Cluster API cannot drain the Node or delete it
		}
		must(client.IgnoreNotFound(w.live().Delete(context.Background(), node)))
	}
	m = m.DeepCopy()
	m.Finalizers = slices.DeleteFunc(m.Finalizers, func(f string) bool { return f == clusterv1.MachineFinalizer })
	w.server.put(m)
}

// held reports whether a hook blocks the deletion of a Machine: a pre-drain hook if it has a Node and its Cluster is not
// being deleted, and a pre-terminate hook always.
func (w *simulation) held(m *clusterv1.Machine) bool {
	return m.Status.NodeRef.IsDefined() && !w.clusterEnds() && annotations.HasWithPrefix(clusterv1.PreDrainDeleteHookAnnotationPrefix, m.Annotations) ||
		annotations.HasWithPrefix(clusterv1.PreTerminateDeleteHookAnnotationPrefix, m.Annotations)
}

// newNode returns the Node of a Machine, as its kubelet registers it.
func newNode(name, providerID, zone string) *corev1.Node {
	resources := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("110")}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: zone}},
		Spec:       corev1.NodeSpec{ProviderID: providerID, Taints: []corev1.Taint{karpv1.UnregisteredNoExecuteTaint}},
		Status: corev1.NodeStatus{
			Capacity: resources, Allocatable: resources,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}
