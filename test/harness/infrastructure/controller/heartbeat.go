// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"math"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// leaseHolder is the holder of the lease of a Node whose instance no longer exists.
const leaseHolder = "simulated-infrastructure"

// StopHeartbeat makes a Node whose kubelet is kwok look as if its instance had failed: the Node's lease is no longer
// renewed, and kube-controller-manager finds the Node unreachable after its grace period.
//
// kwok ignores a Node while another holder has its lease, so the lease is taken over permanently. Removing kwok's
// annotation instead does not work: kwok's informer drops the event and continues to renew the lease, even after the
// Node no longer exists.
func StopHeartbeat(ctx context.Context, workload client.Client, node *corev1.Node, now metav1.MicroTime) error {
	lease := &coordinationv1.Lease{}
	err := workload.Get(ctx, client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: node.Name}, lease)
	if apierrors.IsNotFound(err) {
		return workload.Create(ctx, deadLease(node, now))
	}
	if err != nil || ptr.Deref(lease.Spec.HolderIdentity, "") == leaseHolder {
		return err
	}
	before := lease.DeepCopy()
	holdForGood(lease, now)
	// With the lock, a concurrent renewal wins, so that none is lost between reading and writing.
	return workload.Patch(ctx, lease, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

func deadLease(node *corev1.Node, now metav1.MicroTime) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Name:      node.Name,
		Namespace: corev1.NamespaceNodeLease,
		// Like a kubelet's lease, it is deleted with its Node.
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}},
	}}
	holdForGood(lease, now)
	return lease
}

// holdForGood takes over the lease permanently, without renewing it.
func holdForGood(lease *coordinationv1.Lease, now metav1.MicroTime) {
	lease.Spec.HolderIdentity = ptr.To(leaseHolder)
	lease.Spec.LeaseDurationSeconds = ptr.To[int32](math.MaxInt32)
	if lease.Spec.RenewTime == nil {
		lease.Spec.RenewTime = &now
	}
}

// kubelet replaces kwok and kube-controller-manager in clusters without them: it keeps a Node Ready.
type kubelet struct {
	workload client.Client
	clock    clock.PassiveClock
}

// keepReady makes a Node Ready, if it is not, and removes the taint of Nodes that are not Ready. A Node without kwok's
// annotation is ignored: the test that removed the annotation controls the Node's health.
func (k kubelet) keepReady(ctx context.Context, node *corev1.Node) error {
	if node.Annotations[KwokAnnotation] != KwokAnnotationValue {
		return nil
	}
	if readyStatus(node) != corev1.ConditionTrue {
		if err := k.report(ctx, node, healthyConditions(k.clock.Now())); err != nil {
			return err
		}
	}
	isNotReady := func(taint corev1.Taint) bool { return taint.Key == corev1.TaintNodeNotReady }
	if !slices.ContainsFunc(node.Spec.Taints, isNotReady) {
		return nil
	}
	before := node.DeepCopy()
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, isNotReady)
	// Other controllers remove their taints at the same time, and a patch replaces the whole list.
	return k.workload.Patch(ctx, node, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// stop sets the conditions that kube-controller-manager sets when a kubelet's heartbeat stops.
func (k kubelet) stop(ctx context.Context, node *corev1.Node) error {
	if readyStatus(node) == corev1.ConditionUnknown {
		return nil
	}
	conditions := healthyConditions(k.clock.Now())
	for i := range conditions {
		conditions[i].Status = corev1.ConditionUnknown
		conditions[i].Reason = "NodeStatusUnknown"
		conditions[i].Message = "Kubelet stopped posting node status."
	}
	return k.report(ctx, node, conditions)
}

// report writes the conditions of a kubelet and keeps those of other controllers.
func (k kubelet) report(ctx context.Context, node *corev1.Node, conditions []corev1.NodeCondition) error {
	before := node.DeepCopy()
	for _, condition := range conditions {
		i := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == condition.Type })
		if i < 0 {
			node.Status.Conditions = append(node.Status.Conditions, condition)
		} else {
			node.Status.Conditions[i] = condition
		}
	}
	return k.workload.Status().Patch(ctx, node, client.StrategicMergeFrom(before))
}

func readyStatus(node *corev1.Node) corev1.ConditionStatus {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == corev1.NodeReady {
			return node.Status.Conditions[i].Status
		}
	}
	return ""
}
