// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"
	"fmt"

	"github.com/samber/lo"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/connection"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/enqueue"
)

// setClusterReady sets whether Machines can be created in the served Cluster.
func (r *Reconciler) setClusterReady(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) error {
	conditions := template.StatusConditions()
	cluster := &clusterv1.Cluster{}
	if err := r.clusters.Management.GetClient().Get(ctx, r.clusters.Cluster, cluster); err != nil {
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("getting Cluster %s: %w", r.clusters.Cluster, err)
		}
		r.setNoCluster(template)
		return nil
	}
	initialized := cluster.Status.Initialization
	switch {
	case lo.FromPtr(cluster.Spec.Paused):
		// Before it deletes the Cluster here, clusterctl pauses it. Such a deletion must not be recorded,
		// because the Machines of a moved Cluster exist elsewhere (cloudprovider, checkDeleted).
		conditions.SetFalse(v1alpha1.ConditionClusterReady, v1alpha1.ReasonClusterPaused,
			fmt.Sprintf("Cluster %s is paused: set its spec.paused to false to continue", r.clusters.Cluster))
	case !cluster.DeletionTimestamp.IsZero():
		conditions.SetFalse(v1alpha1.ConditionClusterReady, v1alpha1.ReasonClusterDeleting,
			fmt.Sprintf("Cluster %s is being deleted, so no Machines are created for NodeClaims: delete the NodePools of this template, or set the operator's --cluster-name and --cluster-namespace to another Cluster", r.clusters.Cluster))
	case !lo.FromPtr(initialized.InfrastructureProvisioned):
		conditions.SetFalse(v1alpha1.ConditionClusterReady, v1alpha1.ReasonClusterNotProvisioned,
			fmt.Sprintf("the infrastructure of Cluster %s is not provisioned yet: see its conditions", r.clusters.Cluster))
	case !lo.FromPtr(initialized.ControlPlaneInitialized):
		conditions.SetFalse(v1alpha1.ConditionClusterReady, v1alpha1.ReasonClusterNotProvisioned,
			fmt.Sprintf("the control plane of Cluster %s is not initialized yet: see its conditions", r.clusters.Cluster))
	default:
		conditions.SetTrue(v1alpha1.ConditionClusterReady)
	}
	return nil
}

// setUnreachable sets that a cluster cannot be reached, and leaves all else as it is. A recorded deletion
// of the Cluster stays, because nothing else shows it later. It returns false if the clusters can be reached.
func (r *Reconciler) setUnreachable(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) (bool, error) {
	err := r.clusters.Outage(ctx)
	if err == nil {
		return false, nil
	}
	conditions := template.StatusConditions()
	switch conditions.Get(v1alpha1.ConditionClusterReady).Reason {
	case v1alpha1.ReasonClusterDeleting, v1alpha1.ReasonClusterDeleted:
	default:
		conditions.SetFalse(v1alpha1.ConditionClusterReady, v1alpha1.ReasonClusterUnreachable, connection.Message(err))
	}
	return true, r.setReady(ctx, template)
}

// setNoCluster sets that the served Cluster does not exist, and whether it was deleted. Only the
// condition itself shows the latter, once the Cluster no longer exists: NodeClaims without a Machine
// can end if it was deleted, and must wait if clusterctl has moved it to another management cluster.
func (r *Reconciler) setNoCluster(template *v1alpha1.KarpenterMachineTemplate) {
	conditions := template.StatusConditions()
	if before := conditions.Get(v1alpha1.ConditionClusterReady).Reason; before == v1alpha1.ReasonClusterDeleting || before == v1alpha1.ReasonClusterDeleted {
		conditions.SetFalse(v1alpha1.ConditionClusterReady, v1alpha1.ReasonClusterDeleted,
			fmt.Sprintf("Cluster %s was deleted: delete the NodePools of this template, create the Cluster again, or set the operator's --cluster-name and --cluster-namespace to another Cluster", r.clusters.Cluster))
		return
	}
	conditions.SetFalse(v1alpha1.ConditionClusterReady, v1alpha1.ReasonClusterNotFound,
		fmt.Sprintf("Cluster %s, which this operator serves, does not exist: create it, set the operator's --cluster-name and --cluster-namespace, or give the operator a kubeconfig of the management cluster that clusterctl has moved it to", r.clusters.Cluster))
}

// connections are sources of all templates, when a cluster cannot be reached, and when it can be reached again. No watch
// shows either.
func (r *Reconciler) connections() []source.Source {
	var sources []source.Source
	for _, to := range []*connection.Connection{r.clusters.ToWorkload, r.clusters.ToManagement} {
		if to != nil {
			sources = append(sources, source.Channel(to.Changed(), enqueue.Now(r.templates.All)))
		}
	}
	return sources
}
