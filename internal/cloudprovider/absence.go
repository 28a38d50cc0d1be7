// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"fmt"
	"slices"

	"github.com/samber/lo"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// checkAbsence returns an error if the absence of a Machine does not show that it was deleted: while
// clusterctl moves a Cluster to another management cluster, the Cluster is paused, and then neither
// the Cluster nor its Machines exist in this management cluster. Karpenter core would remove claims
// and Nodes whose machines run.
//
// It reads the Cluster from the API server, because the watch of the Cluster can be behind the one of
// the Machines.
func (c *CloudProvider) checkAbsence(ctx context.Context) error {
	cluster, err := c.clusters.Live(ctx)
	switch {
	case err != nil:
		return err
	case cluster == nil:
		return c.checkDeleted(ctx)
	case lo.FromPtr(cluster.Spec.Paused):
		return fmt.Errorf("cannot determine which Machines exist, because Cluster %s is paused: wait until clusterctl has moved it, or set its spec.paused to false", c.clusters.Cluster)
	}
	return nil
}

// checkDeleted returns an error unless the Cluster, which does not exist, was deleted. A status of a
// template shows that: it is in the workload cluster, so it outlives the Cluster and this process,
// and clusterctl does not move it.
func (c *CloudProvider) checkDeleted(ctx context.Context) error {
	templates := &v1alpha1.KarpenterMachineTemplateList{}
	if err := c.clusters.Workload.GetClient().List(ctx, templates); err != nil {
		return fmt.Errorf("listing KarpenterMachineTemplates: %w", err)
	}
	if slices.ContainsFunc(templates.Items, wasDeleted) {
		return nil
	}
	return fmt.Errorf("cannot determine which Machines exist, because Cluster %s does not exist in this management cluster: if clusterctl has moved it, give the operator a kubeconfig of the other management cluster", c.clusters.Cluster)
}

// wasDeleted reports whether a template has recorded that its Cluster is being deleted, or was.
func wasDeleted(template v1alpha1.KarpenterMachineTemplate) bool {
	ready := template.StatusConditions().Get(v1alpha1.ConditionClusterReady)
	return slices.Contains([]string{v1alpha1.ReasonClusterDeleting, v1alpha1.ReasonClusterDeleted}, ready.Reason)
}
