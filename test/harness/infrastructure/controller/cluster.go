// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/bootstrap/v1alpha1"
	controlplanev1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/controlplane/v1alpha1"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

// clusterReconciler reports a SimulatedCluster as provisioned.
type clusterReconciler struct {
	client.Client
	clock clock.PassiveClock
}

// Reconcile fills the status of one SimulatedCluster.
func (r *clusterReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	obj := &infrav1.SimulatedCluster{}
	return reconcileStatus(ctx, r.Client, r.clock, req, obj, func() {
		obj.Status.Initialization.Provisioned = ptr.To(true)
		obj.Status.FailureDomains = obj.Spec.FailureDomains
		setCondition(obj, r.clock.Now(), metav1.Condition{
			Type: clusterv1.ReadyCondition, Status: metav1.ConditionTrue, Reason: clusterv1.ProvisionedReason,
		})
	})
}

// controlPlaneReconciler reports a SimulatedControlPlane as initialized and externally managed.
type controlPlaneReconciler struct {
	client.Client
	clock clock.PassiveClock
}

// Reconcile fills the status of one SimulatedControlPlane.
func (r *controlPlaneReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	obj := &controlplanev1.SimulatedControlPlane{}
	return reconcileStatus(ctx, r.Client, r.clock, req, obj, func() {
		obj.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
		obj.Status.ExternalManagedControlPlane = ptr.To(true)
		obj.Status.Version = cmp.Or(obj.Spec.RunningVersion, obj.Spec.Version)
		setCondition(obj, r.clock.Now(), metav1.Condition{
			Type: clusterv1.AvailableCondition, Status: metav1.ConditionTrue, Reason: clusterv1.AvailableReason,
		})
	})
}

// configReconciler reports the bootstrap data of a SimulatedConfig as created.
type configReconciler struct {
	client.Client
	clock clock.PassiveClock
}

// Reconcile fills the status of one SimulatedConfig.
func (r *configReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	obj := &bootstrapv1.SimulatedConfig{}
	return reconcileStatus(ctx, r.Client, r.clock, req, obj, func() {
		obj.Status.Initialization.DataSecretCreated = ptr.To(true)
		obj.Status.DataSecretName = obj.Spec.DataSecretName
		setCondition(obj, r.clock.Now(), metav1.Condition{
			Type: clusterv1.ReadyCondition, Status: metav1.ConditionTrue, Reason: clusterv1.ReadyReason,
		})
	})
}

// reconcileStatus reads an object, fills its status unless it is paused or being deleted, and writes what changed.
func reconcileStatus(ctx context.Context, c client.Client, clock clock.PassiveClock, req ctrl.Request, obj conditioned, fill func()) (ctrl.Result, error) {
	if err := c.Get(ctx, req.NamespacedName, obj); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !obj.GetDeletionTimestamp().IsZero() {
		return ctrl.Result{}, nil
	}
	cluster, err := clusterOf(ctx, c, obj)
	if err != nil {
		return ctrl.Result{}, err
	}
	before, _ := obj.DeepCopyObject().(client.Object)
	paused := pausedBy(cluster, obj)
	setPaused(obj, paused, clock.Now())
	if paused == "" {
		fill()
	}
	return ctrl.Result{}, patchStatus(ctx, c, before, obj)
}
