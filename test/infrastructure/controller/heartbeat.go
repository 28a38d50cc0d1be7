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

// leaseHolder holds the lease of a Node whose instance is dead.
const leaseHolder = "simulated-infrastructure"

// StopHeartbeat makes a Node look as if its instance had died, where kwok is the kubelet: the Node's lease is not
// renewed any more, and kube-controller-manager finds the Node unreachable after its grace period.
//
// kwok leaves a Node alone while somebody else holds its lease, so the lease is taken over for good. To take
// kwok's annotation away instead would not do: kwok's informer drops the event, goes on renewing the lease, and renews
// it even after the Node is gone.
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
	// The lock lets a renewal of the same moment win, so that none is lost between reading and writing.
	return workload.Patch(ctx, lease, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

func deadLease(node *corev1.Node, now metav1.MicroTime) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Name:      node.Name,
		Namespace: corev1.NamespaceNodeLease,
		// As a kubelet's lease, it goes with its Node.
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}},
	}}
	holdForGood(lease, now)
	return lease
}

// holdForGood takes the lease over without renewing it.
func holdForGood(lease *coordinationv1.Lease, now metav1.MicroTime) {
	lease.Spec.HolderIdentity = ptr.To(leaseHolder)
	lease.Spec.LeaseDurationSeconds = ptr.To[int32](math.MaxInt32)
	if lease.Spec.RenewTime == nil {
		lease.Spec.RenewTime = &now
	}
}

// kubelet stands in for kwok and kube-controller-manager where there are none: it keeps a Node Ready.
type kubelet struct {
	workload client.Client
	clock    clock.PassiveClock
}

// keepReady makes a Node Ready, if it is not, and frees it from the taint that a Node which is not Ready gets.
// A Node without kwok's annotation is left alone: whoever took it off has taken over the Node's health.
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
	// Others take their taints off at the same time, and a patch replaces the whole list.
	return k.workload.Patch(ctx, node, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// stop reports what kube-controller-manager reports when a kubelet is silent for too long.
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

// report writes a kubelet's own conditions; those of others stay.
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
