// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/pattern"
)

// waitsForFrom is the message of conditions that depend on a MachineDeployment that was never observed.
const waitsForFrom = "waits for the MachineDeployment that spec.template.from names: see condition " + v1alpha1.ConditionFromReady

// setFromReady takes over what the MachineDeployment has that the template follows, and resolves the
// template for what comes after it. If that MachineDeployment cannot be used, what was taken before
// stays, so that no Node is replaced.
func (r *Reconciler) setFromReady(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) error {
	defer pattern.Resolve(template)
	conditions, from := template.StatusConditions(), template.Spec.Template.From
	if from == nil {
		template.Status.From = nil
		return conditions.Clear(v1alpha1.ConditionFromReady)
	}
	// The cache has only those of the served Cluster.
	list := &clusterv1.MachineDeploymentList{}
	if err := r.clusters.Management.GetClient().List(ctx, list, client.InNamespace(r.clusters.Cluster.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the MachineDeployments of Cluster %s: %w", r.clusters.Cluster, err)
	}
	found := pattern.Find(template, list.Items)
	if found == nil {
		conditions.SetFalse(v1alpha1.ConditionFromReady, v1alpha1.ReasonReferenceNotFound, r.notFound(from))
		return nil
	}
	if problem := pattern.Problem(found); problem != "" {
		conditions.SetFalse(v1alpha1.ConditionFromReady, v1alpha1.ReasonReferenceUnusable,
			fmt.Sprintf("spec.template.from: MachineDeployment %s %s", client.ObjectKeyFromObject(found), problem))
		return nil
	}
	template.Status.From = pattern.Observe(found)
	conditions.SetTrue(v1alpha1.ConditionFromReady)
	return nil
}

// notFound returns the message for a MachineDeployment that does not exist or belongs to another Cluster.
func (r *Reconciler) notFound(from *v1alpha1.MachineTemplateSource) string {
	if from.MachineDeploymentTopology != "" {
		return fmt.Sprintf("spec.template.from: the topology of Cluster %s has no MachineDeployment %s: add it to spec.topology.workers.machineDeployments of the Cluster, or correct the name", r.clusters.Cluster, from.MachineDeploymentTopology)
	}
	return fmt.Sprintf("spec.template.from: Cluster %s has no MachineDeployment %s: create it, or name one of this Cluster",
		r.clusters.Cluster, types.NamespacedName{Namespace: r.clusters.Cluster.Namespace, Name: from.MachineDeployment})
}
