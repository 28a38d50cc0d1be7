// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
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
)

const (
	// heartbeatInterval is how often a kubelet reads its Node; the default of the real one.
	heartbeatInterval = 10 * time.Second

	// conflictRetry is how long to wait after a conflict with another writer.
	conflictRetry = time.Second
)

// machineReconciler moves a SimulatedMachine through the life of its instance.
type machineReconciler struct {
	client.Client
	// live bypasses the cache, for actions on an outdated state that cannot be undone.
	live client.Reader
	// workload is the cluster that the Nodes join.
	workload client.Client
	clock    clock.PassiveClock
	// workloadCA are the authorities of its API server, PEM encoded.
	workloadCA []byte
	// nodeReady is true if neither kwok nor kube-controller-manager manages the Nodes.
	nodeReady bool
}

var _ reconcile.Reconciler = &machineReconciler{}

// Reconcile does what is due for one SimulatedMachine and returns when the next step is due.
//
// It writes a SimulatedMachine at most once: the event of the write triggers the next step. If it continued
// immediately, the cache could contain only the first of two writes.
func (r *machineReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	machine := &infrav1.SimulatedMachine{}
	if err := r.Get(ctx, req.NamespacedName, machine); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	result, err := r.reconcile(ctx, machine)
	if apierrors.IsConflict(err) {
		// The state that was read is outdated. The event of a newer SimulatedMachine follows, but there are no events
		// of the workload cluster, so a changed Node or lease is retried after conflictRetry.
		return ctrl.Result{RequeueAfter: conflictRetry}, nil
	}
	return result, err
}

func (r *machineReconciler) reconcile(ctx context.Context, machine *infrav1.SimulatedMachine) (ctrl.Result, error) {
	read := machine.DeepCopy()
	cluster, err := clusterOf(ctx, r.Client, machine)
	if err != nil {
		return ctrl.Result{}, err
	}
	if paused := pausedBy(cluster, machine); paused != "" {
		setPaused(machine, paused, r.clock.Now())
		return ctrl.Result{}, patchStatus(ctx, r.Client, read, machine)
	}
	if !machine.DeletionTimestamp.IsZero() {
		return r.reconcileDelete(ctx, read, machine)
	}
	owner, err := ownerOf(ctx, r.Client, machine)
	if err != nil || owner == nil || cluster == nil {
		// The owner reference and the cluster label come with an event of this object.
		return ctrl.Result{}, err
	}
	if controllerutil.AddFinalizer(machine, infrav1.MachineFinalizer) {
		return ctrl.Result{}, r.Patch(ctx, machine, locked(read))
	}
	if reason, message := missingPrerequisite(machine, owner, cluster); reason != "" {
		r.setStatus(machine, metav1.ConditionFalse, reason, message)
		return ctrl.Result{}, patchStatus(ctx, r.Client, read, machine)
	}
	return r.reconcileInstance(ctx, read, machine, owner, cluster)
}

// reconcileInstance does the steps of the instance that are due.
func (r *machineReconciler) reconcileInstance(ctx context.Context, read, machine *infrav1.SimulatedMachine, owner *clusterv1.Machine, cluster *clusterv1.Cluster) (ctrl.Result, error) {
	if machine.Status.StartTime == nil {
		machine.Status.StartTime = ptr.To(microTime(r.clock.Now()))
		r.setReady(machine, false)
		return ctrl.Result{}, patchStatus(ctx, r.Client, read, machine)
	}
	due := scheduleOf(&machine.Spec, machine.UID, machine.Status.StartTime.Time).at(r.clock.Now(), progress{
		hasProviderID: machine.Spec.ProviderID != "",
		provisioned:   isProvisioned(machine),
		joined:        machine.Status.NodeName != "",
	})
	if due.setProviderID {
		machine.Spec.ProviderID = providerIDOf(machine)
		return ctrl.Result{}, r.Patch(ctx, machine, locked(read))
	}
	if due.reportProvisioned {
		r.provision(machine, owner)
	}
	r.setReady(machine, due.fail)
	var node *corev1.Node
	var joinErr error
	if due.joinNode {
		node, joinErr = r.joinNode(ctx, machine, owner, cluster)
	}
	if failed := (bootError{}); errors.As(joinErr, &failed) {
		r.setBooted(machine, failed)
		return ctrl.Result{RequeueAfter: bootRetry}, patchStatus(ctx, r.Client, read, machine)
	}
	if err := errors.Join(joinErr, patchStatus(ctx, r.Client, read, machine)); err != nil {
		return ctrl.Result{}, err
	}
	return r.keepNode(ctx, machine, node, due.next)
}

// keepNode keeps the Node Ready if the provider is its kubelet, and returns when to do so again. It reads the Node if
// that is nil; the cache of a workload client can lack a Node that has just joined.
func (r *machineReconciler) keepNode(ctx context.Context, machine *infrav1.SimulatedMachine, node *corev1.Node, next time.Duration) (ctrl.Result, error) {
	result := ctrl.Result{RequeueAfter: next}
	if !r.nodeReady || machine.Status.NodeName == "" {
		return result, nil
	}
	if node == nil {
		var err error
		if node, err = r.nodeOf(ctx, machine); err != nil || node == nil {
			return result, err
		}
	}
	// A kubelet watches its Node; without a watch on the workload cluster this replaces it.
	if next == 0 || next > heartbeatInterval {
		result.RequeueAfter = heartbeatInterval
	}
	return result, r.kubelet().keepReady(ctx, node)
}

// joinNode registers the Node as a starting kubelet does: once. It returns nil if it did so before, or no longer may.
func (r *machineReconciler) joinNode(ctx context.Context, machine *infrav1.SimulatedMachine, owner *clusterv1.Machine, cluster *clusterv1.Cluster) (*corev1.Node, error) {
	// With an outdated cache that lacks the join of the Node or the deletion of the machine, a deleted Node must not be
	// created again.
	live := &infrav1.SimulatedMachine{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(machine), live); err != nil {
		return nil, err
	}
	if live.UID != machine.UID || live.Status.NodeName != "" || !live.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	node := newNode(machine, owner)
	join, err := r.boot(ctx, machine, owner, cluster)
	if err != nil {
		return nil, err
	}
	if join != nil {
		joinAs(node, join, machine.Spec.Capacity)
		r.setBooted(machine, nil)
	}
	if r.nodeReady {
		node.Status.Conditions = healthyConditions(r.clock.Now())
	}
	if err := r.workload.Create(ctx, node); err != nil {
		if !apierrors.IsAlreadyExists(err) {
			return nil, err
		}
		// It belongs to this machine if a crash happened between the creation of the Node and its record.
		existing, getErr := r.nodeOf(ctx, machine)
		if getErr != nil || existing == nil {
			return nil, errors.Join(err, getErr)
		}
		node = existing
	}
	if err := r.startControlPlane(ctx, node, join); err != nil {
		return nil, err
	}
	ctrl.LoggerFrom(ctx).V(1).Info("Node joined", "Node", node.Name)
	machine.Status.NodeName = node.Name
	return node, nil
}

// nodeOf returns the Node of the machine, or nil if there is none: a Node of that name can belong to another machine.
func (r *machineReconciler) nodeOf(ctx context.Context, machine *infrav1.SimulatedMachine) (*corev1.Node, error) {
	node := &corev1.Node{}
	if err := r.workload.Get(ctx, client.ObjectKey{Name: machine.Name}, node); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if node.Spec.ProviderID != machine.Spec.ProviderID {
		return nil, nil
	}
	return node, nil
}

func (r *machineReconciler) kubelet() kubelet {
	return kubelet{workload: r.workload, clock: r.clock}
}
