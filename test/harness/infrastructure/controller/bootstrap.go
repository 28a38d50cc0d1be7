// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/kubeadm"
)

// bootRetry is how long after a failed boot a machine tries again, as kubeadm does while it finds no token.
const bootRetry = 5 * time.Second

// BootstrapFailedReason is the reason of the condition BootstrapSucceeded of a machine whose bootstrap data does not work.
const BootstrapFailedReason = "BootstrapFailed"

// bootError is a failure of what runs on a machine. The infrastructure of a real one knows nothing of it.
type bootError struct{ error }

// boot reads the bootstrap data of a machine. It returns nil if that is not kubeadm's, or is not read. Everything that
// kubeadm rejects is a bootError.
func (r *machineReconciler) boot(ctx context.Context, machine *infrav1.SimulatedMachine, owner *clusterv1.Machine, cluster *clusterv1.Cluster) (*kubeadm.Join, error) {
	if r.workloadCA == nil {
		return nil, nil
	}
	secret := &corev1.Secret{}
	// The machine itself reads it, once.
	if err := r.live.Get(ctx, client.ObjectKey{Namespace: machine.Namespace, Name: *owner.Spec.Bootstrap.DataSecretName}, secret); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, bootError{err}
		}
		return nil, err
	}
	join, err := kubeadm.Read(secret.Data["value"], machine.Name)
	if err != nil {
		return nil, bootError{fmt.Errorf("the bootstrap data in Secret %s: %w", secret.Name, err)}
	}
	if join == nil {
		return nil, nil
	}
	if join.NodeName != machine.Name {
		return nil, bootError{fmt.Errorf("the Node would have the name %s, and a simulated machine has only its host name %s", join.NodeName, machine.Name)}
	}
	if join.ClusterConfiguration != "" {
		return join, nil // it creates the cluster
	}
	return join, r.discover(ctx, join, cluster)
}

// discover finds the API server as kubeadm does.
func (r *machineReconciler) discover(ctx context.Context, join *kubeadm.Join, cluster *clusterv1.Cluster) error {
	if err := join.CheckServer(cluster.Spec.ControlPlaneEndpoint.String(), r.workloadCA); err != nil {
		return bootError{err}
	}
	name, err := join.TokenSecretName()
	if err != nil {
		return bootError{err}
	}
	token := &corev1.Secret{}
	switch err := r.workload.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: name}, token); {
	case apierrors.IsNotFound(err):
		return bootError{fmt.Errorf("the API server has no bootstrap token: %w", err)}
	case err != nil:
		return err
	}
	if err := join.CheckToken(token, r.clock.Now()); err != nil {
		return bootError{err}
	}
	return nil
}

// setBooted records whether the bootstrap data works.
func (r *machineReconciler) setBooted(machine *infrav1.SimulatedMachine, failed error) {
	condition := metav1.Condition{Type: infrav1.BootstrapSucceeded, Status: metav1.ConditionTrue, Reason: infrav1.BootstrapSucceeded}
	if failed != nil {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, BootstrapFailedReason, failed.Error()
	}
	setCondition(machine, r.clock.Now(), condition)
}
