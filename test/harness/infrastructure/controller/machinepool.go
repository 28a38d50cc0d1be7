// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/model"
)

// machinePoolReconciler keeps as many instances in a SimulatedMachinePool as its MachinePool has replicas.
type machinePoolReconciler struct {
	client.Client
	// live reads the group and its instances without the cache, as a cloud knows its own state. The desired state is
	// read from the cache, as other providers do.
	live  client.Reader
	clock clock.PassiveClock
}

var _ reconcile.Reconciler = &machinePoolReconciler{}

// Reconcile does what is due for one SimulatedMachinePool.
func (r *machinePoolReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	pool := &infrav1.SimulatedMachinePool{}
	if err := r.live.Get(ctx, req.NamespacedName, pool); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	err := r.reconcile(ctx, pool)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: conflictRetry}, nil
	}
	return ctrl.Result{}, err
}

func (r *machinePoolReconciler) reconcile(ctx context.Context, pool *infrav1.SimulatedMachinePool) error {
	read := pool.DeepCopy()
	cluster, err := clusterOf(ctx, r.Client, pool)
	if err != nil {
		return err
	}
	if paused := pausedBy(cluster, pool); paused != "" {
		setPaused(pool, paused, r.clock.Now())
		return patchStatus(ctx, r.Client, read, pool)
	}
	if !pool.DeletionTimestamp.IsZero() {
		return r.reconcileDelete(ctx, read, pool)
	}
	owner, err := ownerMachinePoolOf(ctx, r.Client, pool)
	if err != nil || owner == nil || cluster == nil {
		// The owner reference and the cluster label come with an event of this object.
		return err
	}
	if controllerutil.AddFinalizer(pool, infrav1.MachinePoolFinalizer) {
		return r.Patch(ctx, pool, locked(read))
	}
	if reason, message := missingForPool(pool, owner, cluster); reason != "" {
		r.setReady(pool, metav1.ConditionFalse, reason, message)
		return patchStatus(ctx, r.Client, read, pool)
	}
	return r.reconcileGroup(ctx, read, pool, owner)
}

// missingForPool returns what a group still waits for before it is created; empty if nothing is missing.
func missingForPool(pool *infrav1.SimulatedMachinePool, owner *clusterv1.MachinePool, cluster *clusterv1.Cluster) (reason, message string) {
	if ptr.Deref(pool.Status.Initialization.Provisioned, false) {
		// Like an instance, a group continues when it was created.
		return "", ""
	}
	return missing(owner.Spec.Template.Spec.Bootstrap, cluster)
}

// reconcileGroup creates or removes instances to match the replicas, and reports those that exist.
//
// It writes its instances first: the next reconcile finds what a crash leaves behind.
func (r *machinePoolReconciler) reconcileGroup(ctx context.Context, read, pool *infrav1.SimulatedMachinePool, owner *clusterv1.MachinePool) error {
	instances, err := r.instancesOf(ctx, pool)
	if err != nil {
		return err
	}
	if err := r.deleteMachinesOfGone(ctx, instances); err != nil {
		return err
	}
	replicas := ptr.Deref(owner.Spec.Replicas, 1)
	create, remove := model.MachinePool(providerOf(pool), replicas, ptr.Deref(pool.Status.ActedReplicas, -1), forModel(instances))
	for range create {
		created := newInstance(pool, owner, len(instances))
		if err := r.Create(ctx, created); err != nil {
			return err
		}
		instances = append(instances, instance{SimulatedMachine: *created})
	}
	removed, err := r.remove(ctx, pool, instances, remove)
	if err != nil {
		return err
	}
	if removed == len(remove) {
		pool.Status.ActedReplicas = ptr.To(replicas)
	}
	return r.report(ctx, read, pool, instances)
}

func providerOf(pool *infrav1.SimulatedMachinePool) model.PoolProvider {
	return model.PoolProvider{
		Lenient:           pool.Spec.Behavior.Lenient,
		IgnoresAnnotation: pool.Spec.Behavior.IgnoreDeleteAnnotation,
		RemovesAnnotated:  pool.Spec.Behavior.RemoveAnnotated,
	}
}

// report writes which instances exist.
func (r *machinePoolReconciler) report(ctx context.Context, read, pool *infrav1.SimulatedMachinePool, instances []instance) error {
	if ids := providerIDs(instances); !slices.Equal(ids, pool.Spec.ProviderIDList) {
		status := pool.Status
		pool.Spec.ProviderIDList = ids
		if err := r.Patch(ctx, pool, locked(read)); err != nil {
			return err
		}
		read = pool.DeepCopy()
		pool.Status = status
	}
	pool.Status.Initialization.Provisioned, pool.Status.Ready = ptr.To(true), true
	pool.Status.Replicas = int32(len(instances))
	pool.Status.InfrastructureMachineKind = "SimulatedMachine"
	if pool.Spec.Behavior.WithoutMachines {
		pool.Status.InfrastructureMachineKind = ""
	}
	r.setReady(pool, metav1.ConditionTrue, clusterv1.ProvisionedReason, "")
	return patchStatus(ctx, r.Client, read, pool)
}

// reconcileDelete deletes all instances, and then the group.
func (r *machinePoolReconciler) reconcileDelete(ctx context.Context, read, pool *infrav1.SimulatedMachinePool) error {
	if !controllerutil.ContainsFinalizer(pool, infrav1.MachinePoolFinalizer) {
		return nil
	}
	instances, err := r.instancesOf(ctx, pool)
	if err != nil {
		return err
	}
	if len(instances) == 0 {
		controllerutil.RemoveFinalizer(pool, infrav1.MachinePoolFinalizer)
		return r.Patch(ctx, pool, locked(read))
	}
	for i := range instances {
		// Cluster API creates no Machines for a MachinePool that is being deleted, so there is nothing to wait for.
		if err := r.terminate(ctx, &instances[i]); err != nil {
			return err
		}
	}
	pool.Status.Replicas = int32(len(instances))
	r.setReady(pool, metav1.ConditionFalse, clusterv1.DeletingReason, "Instances are being terminated")
	return patchStatus(ctx, r.Client, read, pool)
}

// setReady sets Ready, and Paused to its value for any pool that is reconciled.
func (r *machinePoolReconciler) setReady(pool *infrav1.SimulatedMachinePool, ready metav1.ConditionStatus, reason, message string) {
	now := r.clock.Now()
	setPaused(pool, "", now)
	setCondition(pool, now, metav1.Condition{Type: clusterv1.ReadyCondition, Status: ready, Reason: reason, Message: message})
}
