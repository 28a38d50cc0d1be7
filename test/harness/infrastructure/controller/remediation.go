// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

// phaseDone is the phase of a SimulatedRemediation after the restart.
const phaseDone = "Done"

// remediationReconciler restarts machines.
type remediationReconciler struct {
	client.Client
	workload client.Client
	clock    clock.PassiveClock
}

// Reconcile restarts the machine of one SimulatedRemediation, once. A repeated restart is the same one, because the UID of the
// SimulatedRemediation is the ID of the boot.
func (r *remediationReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	remediation := &infrav1.SimulatedRemediation{}
	if err := r.Get(ctx, req.NamespacedName, remediation); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !remediation.DeletionTimestamp.IsZero() || remediation.Status.Phase == phaseDone {
		return ctrl.Result{}, nil
	}
	if rest := remediation.CreationTimestamp.Add(remediation.Spec.Duration.Duration).Sub(r.clock.Now()); rest > 0 {
		return ctrl.Result{RequeueAfter: rest}, nil
	}
	node, err := r.nodeOf(ctx, remediation)
	if err != nil {
		return ctrl.Result{}, err
	}
	if node != nil && remediation.Spec.Effect != infrav1.RemediationFails {
		if err := r.restart(ctx, remediation, node); err != nil {
			return ctrl.Result{}, err
		}
	}
	before := remediation.DeepCopy()
	remediation.Status.Phase = phaseDone
	return ctrl.Result{}, patchStatus(ctx, r.Client, before, remediation)
}

// nodeOf returns the Node of the Machine that owns a SimulatedRemediation; nil if there is none.
func (r *remediationReconciler) nodeOf(ctx context.Context, remediation *infrav1.SimulatedRemediation) (*corev1.Node, error) {
	owner, found := lo.Find(remediation.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.Kind == "Machine" })
	if !found {
		return nil, nil
	}
	machine := &clusterv1.Machine{}
	if err := r.Get(ctx, client.ObjectKey{Namespace: remediation.Namespace, Name: owner.Name}, machine); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if machine.UID != owner.UID || machine.Status.NodeRef.Name == "" {
		return nil, nil
	}
	node := &corev1.Node{}
	if err := r.workload.Get(ctx, client.ObjectKey{Name: machine.Status.NodeRef.Name}, node); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return node, nil
}

// restart gives a Node the ID of another boot. If the restart heals, the Node has only the conditions of a healthy kubelet
// after that, and kwok acts as its kubelet again.
func (r *remediationReconciler) restart(ctx context.Context, remediation *infrav1.SimulatedRemediation, node *corev1.Node) error {
	before := node.DeepCopy()
	node.Status.NodeInfo.BootID = string(remediation.UID)
	heals := remediation.Spec.Effect != infrav1.RemediationRestarts
	if heals {
		node.Status.Conditions = healthyConditions(r.clock.Now())
	}
	if err := r.workload.Status().Patch(ctx, node, client.StrategicMergeFrom(before)); err != nil || !heals {
		return err
	}
	if node.Annotations[KwokAnnotation] == KwokAnnotationValue {
		return nil
	}
	before = node.DeepCopy()
	metav1.SetMetaDataAnnotation(&node.ObjectMeta, KwokAnnotation, KwokAnnotationValue)
	return r.workload.Patch(ctx, node, client.MergeFrom(before))
}
